"""What all settings have in common: YAML files, overrides, and readable errors."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from keisei.errors import KeiseiError
from keisei.files import read_regular

_MAX_FILE = 1024 * 1024  # bytes
_MAX_VALUES = 100_000
_MAX_DEPTH = 50

_RENAMED = {"value_loss_coeff": "value_loss_coef"}  # the settings of old runs have such names


class ConfigError(KeiseiError, ValueError):
    """Settings that cannot be used; the message names the field, the value and what is allowed."""


class Section(BaseModel):
    """Settings that belong together."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    @model_validator(mode="before")
    @classmethod
    def _take_old_names(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        # If both names are there, the later one counts: overrides come after the file.
        return {_RENAMED.get(name, name): value for name, value in data.items()}


def _known_device(device: str) -> str:
    kind, _, number = device.partition(":")
    if kind not in ("auto", "cpu", "cuda") or (number and not number.isdigit()):
        raise ValueError("choose auto, cpu, cuda or cuda:N")
    return device


Device = Annotated[str, AfterValidator(_known_device)]  # `processes.machine.choose_device` finds it


class WandbConfig(Section):
    """Weights & Biases (extra `wandb`)."""

    enabled: bool = Field(False, description="Also log there; a failure there never stops a run.")
    project: str = Field("keisei", description="Name of the project.")
    mode: Literal["online", "offline"] = Field("offline", description="offline just writes files.")


def unknown_settings(name: Path | str, names: Sequence[str]) -> ConfigError:
    """What to say of settings that nobody knows by this name."""
    known = ", ".join(names)
    return ConfigError(
        f"unknown settings {str(name)!r}: choose one of {known}, or name a YAML file"
    )


def read_settings(file: Path | str | None, example: str) -> dict[str, Any]:
    """What a YAML file says (nothing without one); `example` is a line that it might have."""
    if file is None:
        return {}
    try:
        data = parse_yaml(read_regular(Path(file), _MAX_FILE).decode("utf-8")) or {}
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{file} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(data, dict):
        raise ConfigError(f"{file} must hold settings such as `{example}`, not {data!r}")
    return data


def parse_yaml(text: str) -> Any:
    """Plain values. Aliases are counted as often as they stand for something.

    A few lines of them can stand for billions of values, and a stranger may have written them.
    """
    if _depth(text) > _MAX_DEPTH:  # the parser takes long to notice
        raise yaml.YAMLError("it is too deeply nested")
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _unfolded(node, {}) > _MAX_VALUES:
            raise yaml.YAMLError(f"its aliases stand for more than {_MAX_VALUES:,} values")
        return loader.construct_document(node)
    except RecursionError:
        raise yaml.YAMLError("it is too deeply nested") from None
    finally:
        loader.dispose()


def _depth(text: str) -> int:
    """How deep brackets are nested, or a little more if some are in strings."""
    steps = (1 if bracket in "[{" else -1 for bracket in re.findall(r"[][{}]", text))
    return max(accumulate(steps), default=0)


def _unfolded(node: yaml.Node, known: dict[int, float]) -> float:
    """How many values a node stands for; infinitely many if it holds itself."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in known:
        known[id(node)] = math.inf
        parts = node.value
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in node.value for part in pair]
        known[id(node)] = 1 + sum(_unfolded(part, known) for part in parts)
    return known[id(node)]


def to_yaml(settings: Section) -> str:
    """The settings as YAML, as `read_settings` takes them."""
    return yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def apply_override(data: dict[str, Any], override: str) -> None:
    """Change plain data by a `section.field=value`."""
    name, equals, text = override.partition("=")
    if not equals or not all(name.strip().split(".")):
        raise ConfigError(f"{override!r} is not of the form section.field=value")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        value = text
    # YAML wants a dot in 1e-4; people do not write it.
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = float(value)
    set_value(data, name.strip(), value)


def set_value(data: dict[str, Any], name: str, value: Any) -> None:
    """Change plain data by a setting's dotted name."""
    *sections, last = name.split(".")
    for section in sections:
        data = data.setdefault(section, {})
        if not isinstance(data, dict):
            raise ConfigError(f"{name}: {section} is not a section")
    data[last] = value


def setting_names(section: type[BaseModel], before: str = "") -> list[str]:
    """The dotted names of all settings, and of the sections that they are in.

    >>> from keisei.config_schema import AppConfig
    >>> setting_names(AppConfig)[:3]
    ['env', 'env.seed', 'env.device']
    """
    names = []
    for name, field in section.model_fields.items():
        names.append(before + name)
        inner: Any = field.annotation
        if hasattr(inner, "model_fields"):
            names += setting_names(inner, f"{before}{name}.")
    return names


def explain(error: Any, names: Sequence[str], elsewhere: Mapping[str, str] | None = None) -> str:
    """One of pydantic's errors in a few words, with the field and the value.

    `names` there are; `elsewhere` has words that other programs use for some of them.
    """
    where = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        meant = _meant(where, names, elsewhere or {})
        advice = f": did you mean {meant}?" if meant else " (`keisei config` lists them all)"
        return f"{where}: there is no such setting{advice}"
    if error["type"] == "model_type":
        example = next(name for name in names if name.startswith(f"{where}."))
        return f"{where} is a section: set what is in it, as {example}=..., not {error['input']!r}"
    message = str(error["msg"]).removeprefix("Value error, ")
    if not where:
        return message
    return f"{where}: {message[0].lower() + message[1:]}, not {error['input']!r}"


def _meant(wrong: str, names: Sequence[str], elsewhere: Mapping[str, str]) -> str:
    """The settings of the same name in other sections, else what is spelt most alike."""
    last = wrong.rpartition(".")[2]
    if last in elsewhere:
        return elsewhere[last]
    own = [name.rpartition(".")[2] for name in names]
    alike = last if last in own else "".join(get_close_matches(last, own, n=1))
    return " or ".join(name for name, short in zip(names, own, strict=True) if short == alike)
