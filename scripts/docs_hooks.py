"""What MkDocs calls while it builds the site: reference pages made from the code itself, and the
files outside of docs/ that its pages link to.

A page says by a comment what stands there: `<!-- commands -->`, `<!-- settings -->` and
`<!-- world settings -->`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
import yaml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pydantic.fields import FieldInfo

from keisei.cli import app
from keisei.config_schema import AppConfig
from keisei.settings import Section
from keisei.worlds import WORLDS, WorldRunConfig

ROOT = Path(__file__).parents[1]
# Files of the repository that are on the site, and where.
OUTSIDE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "keisei/models/README.md": "network.md",
    "benchmarks/peers/README.md": "peers.md",
    "examples/reference.py": "examples/reference.py",
    **{
        f"examples/{name}.py": f"examples/{name}.py"
        for name in (
            "analyse_position",
            "gymnasium_agent",
            "onnx_network",
            "own_player",
            "parallel_training_example",
            "train_and_plot",
        )
    },
    "keisei/web/static/icon.svg": "images/icon.svg",
}
# Defaults that differ from machine to machine.
BY_MACHINE = {
    "training.parallel.enabled": "`true` where there is more than one core",
    "training.parallel.num_workers": "the number of cores",
}
LIMITS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Take in what is outside of docs/."""
    for source, place in OUTSIDE.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put in what is made from the code, and fix links between docs/ and the rest."""
    if page.file.src_uri in OUTSIDE.values():
        return re.sub(r"\]\((\.\./)*docs/", "](", markdown)
    for source, place in OUTSIDE.items():
        up = "../" * page.file.src_uri.count("/")
        markdown = markdown.replace(f"](../{up}{source}", f"]({up}{place}")
    makers = {"commands": commands, "settings": settings, "world settings": world_settings}
    for name, make in makers.items():
        mark = f"<!-- {name} -->"
        if mark in markdown:
            markdown = markdown.replace(mark, "\n".join(make()))
    return markdown


def commands() -> Iterator[str]:
    """Every command with its arguments and options."""
    yield from _command(typer.main.get_command(app), "keisei")


def _command(command: Any, name: str) -> Iterator[str]:
    inner = getattr(command, "commands", None)
    if inner is None:
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        words = [p.name.upper() if p.required else f"[{p.name.upper()}]" for p in arguments]
        usage = " ".join([name, *words, "[OPTIONS]"])
        yield from (f"## {name}", "", command.help, "", "```text", usage, "```", "")
        shown = [p for p in command.params if not getattr(p, "hidden", False)]
        if shown:
            yield from _table(("option", "default", "meaning"), map(_parameter, shown))
        return
    for word, one in inner.items():
        yield from _command(one, f"{name} {word}")


def _parameter(parameter: Any) -> tuple[str, str, str]:
    if parameter.param_type_name == "argument":
        names = _name(parameter.name.upper())
    else:
        names = ", ".join(map(_name, [*parameter.opts, *parameter.secondary_opts]))
    default = parameter.default
    if isinstance(default, bool) and parameter.secondary_opts:
        default = (parameter.opts if default else parameter.secondary_opts)[0]
    shown = "" if default in (None, "", False) or callable(default) else f"`{default}`"
    many = " (May be given more than once.)" if getattr(parameter, "multiple", False) else ""
    return names, shown, (parameter.help or "") + many


def _name(name: str) -> str:
    """A name that no line breaks (stylesheets/site.css)."""
    return f"`{name}`{{.name}}"


def settings() -> Iterator[str]:
    """All settings of `keisei train`, a table for each section."""
    yield from _sections(AppConfig())


def world_settings() -> Iterator[str]:
    """All settings of `keisei worlds train`, then those of each world."""
    yield from ("## Every run", "")
    yield from _sections(WorldRunConfig())
    for name, world in WORLDS.items():
        yield from (f"## {name}", "", (world.__doc__ or "").strip().splitlines()[0], "")
        yield from _fields(world.Settings(), "world_settings.")


def _sections(section: Section, prefix: str = "") -> Iterator[str]:
    """The section's own settings, then the sections in it."""
    if prefix:
        about = (type(section).__doc__ or "").strip().splitlines()[0]
        yield from (f"## {prefix[:-1]}", "", about, "")
    yield from _fields(section, prefix)
    for name in type(section).model_fields:
        if isinstance(inner := getattr(section, name), Section):
            yield from _sections(inner, f"{prefix}{name}.")


def _fields(section: Section, prefix: str) -> Iterator[str]:
    rows = []
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, Section):
            continue
        default = BY_MACHINE.get(prefix + name, f"`{_as_yaml(value)}`")
        rows.append((_name(prefix + name), default, allowed(field), field.description or ""))
    if rows:
        yield from _table(("name", "default", "allowed", "meaning"), rows)


def _as_yaml(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n").strip()


def allowed(field: FieldInfo) -> str:
    """In words, which values a setting takes."""
    kind, empty = field.annotation, ""
    if type(None) in get_args(kind):
        kind, empty = get_args(kind)[0], ", or nothing"
    limits = [
        f"{word} {getattr(rule, key):,}"
        for rule in field.metadata
        for key, word in LIMITS.items()
        if hasattr(rule, key)
    ]
    return ", ".join([_kind(kind), *limits]) + empty


def _kind(kind: Any) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in inner)
    if origin is Union:
        return " or ".join(map(_kind, inner))
    if origin is Annotated:
        return _kind(inner[0])
    if origin is list:
        return f"list of: {_kind(inner[0])}"
    if origin is dict:
        return f"for each of {_kind(inner[0])}: {_kind(inner[1])}" if inner[1] is not Any else "any"
    if isinstance(kind, type) and issubclass(kind, Section):
        return ", ".join(f"`{name}`: {allowed(field)}" for name, field in kind.model_fields.items())
    names = {bool: "`true`, `false`", int: "whole number", float: "number", str: "text", Any: "any"}
    return names[kind]


def _table(head: tuple[str, ...], rows: Any) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |"
    yield ""
