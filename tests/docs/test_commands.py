"""Every command and every Python block of the docs runs: real processes, page by page, in order."""

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import httpx
import pytest
import typer

from keisei.cli import app
from keisei.shogi.records import read_record, write_record
from tests.conftest import HARVEST
from tests.docs.pages import PAGES, ROOT, blocks, commands, name_of, named_commands
from tests.docs.rules import (
    ONE_PROCESS,
    PYTHON,
    PYTHON_ELSEWHERE,
    RULES,
    TINY_WORLD,
    overrides,
    rule_for,
    shortened,
)
from tests.processes import Process

LIMIT = 200  # seconds; each takes a few
PIPE = subprocess.PIPE


def start(folder, words, **streams):
    program, *arguments = words
    how = {"cwd": folder, "env": {**os.environ, "PYTHONPATH": str(ROOT)}, **streams}
    if program == "keisei":
        return Process(arguments, **how)
    assert program == "python", words
    return Process(arguments[1:], folder / arguments[0], **how)


def finish(process, words, said=None, codes=(0,)):
    """The command has ended well, by itself or as it was told."""
    out, err = process.communicate(said, timeout=LIMIT)
    assert process.returncode in codes, f"{shlex.join(words)}\n{out}\n{err}"


def run(folder, words):
    finish(start(folder, words), words)


def serve(folder, words):
    """The page is there; Ctrl-C ends the server."""
    process = start(folder, words)
    try:
        address = next((found for line in process.stdout if (found := ADDRESS.search(line))), None)
        assert address, process.stderr.read()
        port, query = address.groups()
        url = f"http://127.0.0.1:{port}/{query}"
        answer = httpx.get(url, follow_redirects=True, timeout=LIMIT)
        assert answer.status_code == 200
        assert "Keisei" in answer.text
        process.send_signal(signal.SIGINT)
        finish(process, words, codes=(0, 130))
    finally:
        process.kill()


ADDRESS = re.compile(r"http://[^:/]+:(\d+)/(\S*)")


def usi(folder, words):
    """The engine finds a move, and ends when it is told to."""
    process = start(folder, words, stdin=PIPE)
    said = "usi\nisready\nposition startpos moves 7g7f\ngo nodes 4\n"
    try:
        process.stdin.write(said)
        process.stdin.flush()
        assert any(line.startswith("bestmove ") for line in process.stdout)
        finish(process, words, "quit\n")
    finally:
        process.kill()


def keys(folder, words):
    """Somebody sits at the terminal and presses q until the command has ended.

    What is typed before it listens is lost, as it is for a person.
    """
    ours, theirs = os.openpty()
    process = start(folder, words, stdin=theirs)
    try:
        for _ in range(LIMIT):
            os.write(ours, b"q")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1)
                break
        finish(process, words)
    finally:
        process.kill()
        os.close(ours)
        os.close(theirs)


HOW = {"run": run, "serve": serve, "usi": usi, "keys": keys}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What a reader has after some days: the source's files, small runs, games, an own world."""
    folder = tmp_path_factory.mktemp("reader")
    (folder / "harvest.py").write_text(HARVEST, encoding="utf-8")
    for name in ("examples", "scripts"):
        (folder / name).symlink_to(ROOT / name)
    run(folder, ["keisei", "train", "--name", "overnight", *ONE_PROCESS])
    settings = overrides(TINY_WORLD)
    run(folder, ["keisei", "worlds", "train", "treasure_hunt", "--name", "hunt", *settings])
    overnight = folder / "runs/overnight"
    for name in ("first", "big"):
        shutil.copytree(overnight, folder / "runs" / name)
    shutil.copy(next(overnight.glob("checkpoints/*.pt")), folder / "step_000000524288.pt")
    game = read_record(next(overnight.glob("games/*.kif*")))
    for suffix in ("kif", "csa"):
        write_record(game, folder / f"game.{suffix}")
    return folder


@pytest.fixture(scope="module")
def done():
    """The commands that have run: on a second page they would do the same."""
    return set()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", [p for p in PAGES if commands(p)], ids=name_of)
def test_the_commands_of_a_page_run_in_order(page, folder, done):
    for words in commands(page):
        rule = rule_for(words)
        if rule.why_not or tuple(words) in done or needs_what_is_not_here(words):
            continue
        if "--name" in words:  # a name that this reader has used for another run
            name = words[words.index("--name") + 1]
            shutil.rmtree(folder / "runs" / name, ignore_errors=True)
        HOW[rule.how](folder, shortened(words, rule))
        done.add(tuple(words))


def needs_what_is_not_here(words):
    """Other people's engines are run where they are installed."""
    engines = re.findall(r"usi:([^, ]+)", " ".join(words))
    return not all(shutil.which(engine) for engine in engines)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=name_of)
def test_the_python_of_a_page_is_a_script_that_runs(page, folder):
    if name_of(page) in PYTHON_ELSEWHERE:
        return
    script = "\n".join(blocks(page, "python"))
    for text, instead in PYTHON.get(name_of(page), {}).items():
        assert text in script
        script = script.replace(text, instead)
    file = folder / "script.py"
    file.write_text(script, encoding="utf-8")
    run(folder, ["python", str(file)])


@pytest.mark.parametrize("page", [p for p in PAGES if named_commands(p)], ids=name_of)
def test_a_command_that_is_named_in_the_text_exists_with_its_options(page):
    for words in named_commands(page):
        command, rest = typer.main.get_command(app), words[1:]
        while rest and rest[0] in getattr(command, "commands", {}):
            command = command.commands[rest.pop(0)]
        known = {option for parameter in command.params for option in parameter.opts}
        known |= {option for parameter in command.params for option in parameter.secondary_opts}
        unknown = [w for w in rest if w.startswith("-") and w not in {*known, "--help"}]
        is_group = hasattr(command, "commands")
        assert not unknown, words
        assert not (is_group and rest and rest[0].islower()), words


def test_every_rule_is_needed_and_every_test_that_it_names_is_there():
    rules = [rule_for(words) for page in PAGES for words in commands(page)]
    assert [rule.pattern for rule in RULES if rule not in rules] == []
    named = [rule.why_not for rule in RULES] + list(PYTHON_ELSEWHERE.values())
    for path, _, test in (text.partition("::") for text in named if "::" in text):
        assert f"def {test}(" in Path(ROOT / path).read_text(encoding="utf-8")
