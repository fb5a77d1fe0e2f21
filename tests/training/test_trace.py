"""A trace never costs anybody a file, nor a training."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from keisei.cli import app
from keisei.config_schema import AppConfig
from keisei.runs.run import Run
from keisei.runs.trace import Trace
from keisei.settings import to_yaml


@pytest.fixture
def keisei(tmp_path, monkeypatch):
    """Runs `keisei ...` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, arguments)


@pytest.mark.parametrize("command", [["train"], ["worlds", "train", "tag"]], ids=" ".join)
def test_a_file_that_is_there_is_refused_and_left_alone(keisei, command):
    Path("notes.txt").write_text("precious")
    done = keisei(*command, "--name", "a", "--trace", "notes.txt")
    assert done.exit_code == 2
    assert "notes.txt already exists: choose another name, or remove it" in done.stderr
    assert Path("notes.txt").read_text() == "precious"
    assert not Path("runs").exists()


@pytest.mark.parametrize("command", [["train"], ["worlds", "train", "tag"]], ids=" ".join)
def test_a_folder_that_is_not_there_is_refused_before_a_run_is_made(keisei, command):
    done = keisei(*command, "--trace", "nowhere/trace.json")
    assert done.exit_code == 2
    assert "nowhere is not a folder" in done.stderr
    assert not Path("runs").exists()


def test_a_training_that_cannot_begin_leaves_no_trace(keisei):
    assert keisei("train", "--trace", "trace.json", "--resume", "nothing").exit_code == 2
    Run.create(Path("runs"), "empty", to_yaml(AppConfig()))
    with Run.open("empty", Path("runs")).lock():
        assert keisei("train", "--trace", "trace.json", "--resume", "empty").exit_code == 2
    assert not Path("trace.json").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a disk that is always full")
def test_a_full_disk_is_one_warning_and_the_work_goes_on(caplog):
    trace = Trace(Path("/dev/full"))
    for _ in range(3):
        with trace.span("learn"):
            pass
    trace.close()
    assert caplog.text.count("the trace /dev/full ends here: ") == 1
    assert "No space left on device" in caplog.text


def test_a_place_that_cannot_be_written_is_one_warning(tmp_path, caplog):
    trace = Trace(tmp_path)
    trace.mark("learner", "here")
    trace.close()
    assert caplog.text.count(f"the trace {tmp_path} ends here: Is a directory") == 1


def test_a_trace_is_json(tmp_path):
    trace = Trace(tmp_path / "trace.json")
    with trace.span("learn"):
        trace.mark("worker", "started")
    trace.close()
    events = json.loads((tmp_path / "trace.json").read_text())
    assert [event["name"] for event in events] == ["thread_name", "started", "thread_name", "learn"]
