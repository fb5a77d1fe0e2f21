"""The process that cleans up behind a run's own Ray cluster."""

import sys

from keisei.processes.ray_reaper import start_reaper


def test_nothing_that_lies_in_the_current_folder_is_run(tmp_path, monkeypatch):
    (tmp_path / "psutil.py").write_text("open('executed', 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])
    reaper = start_reaper()
    reaper.stdin.close()
    assert reaper.wait(timeout=60) == 0
    assert not (tmp_path / "executed").exists()
