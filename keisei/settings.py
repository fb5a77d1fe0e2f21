"""What all settings have in common: YAML files, overrides, and readable errors."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

from keisei.errors import KeiseiError


class ConfigError(KeiseiError, ValueError):
    """Settings that cannot be used; the message names the field, the value and what is allowed."""


class Section(BaseModel):
    """Settings that belong together."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)


def read_settings(file: Path | str | None, example: str) -> dict[str, Any]:
    """What a YAML file says (nothing without one); `example` is a line that it might have."""
    if file is None:
        return {}
    try:
        data = yaml.safe_load(Path(file).read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(data, dict):
        raise ConfigError(f"{file} must hold settings such as `{example}`, not {data!r}")
    return data


def to_yaml(settings: Section) -> str:
    """The settings as YAML, as `read_settings` takes them."""
    return yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def apply_override(data: dict[str, Any], override: str) -> None:
    """Change plain data by a `section.field=value`."""
    path, equals, text = override.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise ConfigError(f"{override!r} is not of the form section.field=value")
    for key in keys[:-1]:
        data = data.setdefault(key, {})
        if not isinstance(data, dict):
            raise ConfigError(f"{override!r}: {key} is not a section")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        value = text
    # YAML wants a dot in 1e-4; people do not write it.
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = float(value)
    data[keys[-1]] = value


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
