"""Writing a file: the old one or the new one is there. Reading a stranger's: only if it is one."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from keisei.files import read_regular, replace_file, write_json


def test_a_file_is_made_and_replaced_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "file"
    for data in (b"old", b"the new one", memoryview(b"")):
        replace_file(path, data)
        assert path.read_bytes() == data
        assert list(tmp_path.iterdir()) == [path]


def test_when_writing_fails_the_old_file_stays_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(TypeError):
        replace_file(path, "not bytes")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_results_replace_a_file_also_behind_a_link_and_are_written_to_a_pipe(tmp_path):
    path, link = tmp_path / "file.json", tmp_path / "link.json"
    path.write_text("old")
    link.symlink_to(path)
    write_json(link, {"elo": 1})
    assert link.is_symlink()
    assert path.read_text() == '{\n  "elo": 1\n}\n'
    with pytest.raises(TypeError):
        write_json(path, {"elo": object()})
    assert path.read_text() == '{\n  "elo": 1\n}\n'
    reading, writing = os.pipe()
    write_json(Path(f"/proc/self/fd/{writing}"), [])
    assert os.read(reading, 9) == b"[]\n"
    os.close(reading)
    os.close(writing)


def test_when_renaming_fails_nothing_is_left_beside_it(tmp_path):
    folder = tmp_path / "folder"
    (folder / "full").mkdir(parents=True)
    with pytest.raises(OSError, match="folder"):
        replace_file(folder, b"new")
    assert list(tmp_path.iterdir()) == [folder]


def test_the_data_is_synced_before_the_rename_and_the_folder_after_it(tmp_path, monkeypatch):
    done = []

    def watched(name, what):
        call = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *given: (done.append(what(*given)), call(*given)))

    watched("fsync", lambda fd: "folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "data")
    watched("replace", lambda *_: "rename")
    replace_file(tmp_path / "file", b"new")
    assert done == ["data", "rename", "folder"]


WRITER = """
import sys
from pathlib import Path
from keisei.files import replace_file

while True:
    for letter in (b"a", b"b"):
        replace_file(Path(sys.argv[1]), letter * 1_000_000)
        print(flush=True)
"""


def test_a_reader_never_sees_half_a_file_even_if_the_writer_is_killed(tmp_path):
    path = tmp_path / "file"
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        try:
            for _ in range(20):
                assert writer.stdout.readline()
                assert path.read_bytes() in (b"a" * 1_000_000, b"b" * 1_000_000)
        finally:
            writer.kill()
    assert path.read_bytes() in (b"a" * 1_000_000, b"b" * 1_000_000)


def test_only_a_regular_file_of_at_most_so_many_bytes_is_read(tmp_path):
    (tmp_path / "file").write_bytes(b"1234")
    assert read_regular(tmp_path / "file", 4) == b"1234"
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name, limit, follow, said in [
        ("file", 3, True, "more than 3 bytes"),
        ("pipe", 4, True, "not a regular file"),  # and it is not waited for
        ("device", 4, True, "not a regular file"),
        ("device", 4, False, "symbolic link"),
        ("link", 4, False, "symbolic link"),
        (".", 4, True, "directory"),
    ]:
        with pytest.raises(OSError, match=said):
            read_regular(tmp_path / name, limit, follow)
    assert read_regular(tmp_path / "link", 4) == b"1234"
