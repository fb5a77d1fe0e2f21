"""Keisei without its repository: nothing that it says may lead to a file that is only there."""

import ast
import re
from pathlib import Path

import typer
from typer.testing import CliRunner

import keisei
from keisei import configs
from keisei.cli import app

PACKAGE = Path(keisei.__file__).parent
ELSEWHERE = re.compile(
    r"\b(docs|configs|examples|scripts|tests|benchmarks)/|\.md\b|keisei\[|Makefile|\bmake \w+`"
)


def commands(command, words=("keisei",)):
    """Every command with the words that it is called by."""
    yield " ".join(words), command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*words, name))


def help_texts():
    for name, command in commands(typer.main.get_command(app)):
        yield name, command.help or ""
        for parameter in command.params:
            yield f"{name} {parameter.name}", getattr(parameter, "help", None) or ""


def messages(file):
    """The texts of a module that may be shown: all but docstrings."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and node not in docstrings:
            yield f"{file.name}:{node.lineno}", node.value


def test_every_option_is_explained():
    assert [name for name, text in help_texts() if not text] == []


def test_no_help_text_names_a_file_of_the_repository():
    assert [(name, text) for name, text in help_texts() if ELSEWHERE.search(text)] == []


def test_no_message_names_a_file_of_the_repository():
    said = [message for file in PACKAGE.rglob("*.py") for message in messages(file)]
    assert [(place, text) for place, text in said if ELSEWHERE.search(text)] == []


def test_no_comment_in_the_settings_names_a_file_of_the_repository():
    texts = {file.name: file.read_text() for file in configs.FOLDER.glob("*.yaml")}
    assert [name for name, text in texts.items() if ELSEWHERE.search(text)] == []


def test_the_help_of_train_names_the_settings_that_come_with_keisei():
    train = dict(help_texts())["keisei train config"]
    assert all(name in train for name in configs.NAMES)


def test_every_file_of_results_is_refused_at_once_if_its_folder_is_not_there():
    asked = 0
    for name, command in commands(typer.main.get_command(app)):
        required = ["x" for one in command.params if one.param_type_name == "argument"]
        for option in {"--json", "--plot", "--film"} & {o for p in command.params for o in p.opts}:
            words = [*name.split()[1:], *required, option, "nowhere/file"]
            done = CliRunner().invoke(app, words)
            assert done.exit_code == 2, words
            assert "there is no folder nowhere" in done.stderr
            asked += 1
    assert asked >= 12
