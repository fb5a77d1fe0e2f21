"""What all settings have in common: YAML files, overrides, and readable errors."""

from __future__ import annotations

import contextlib
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


def explain(error: Any) -> str:
    """One of pydantic's errors in a few words, with the field and the value."""
    where = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"{where}: there is no such setting (`keisei config` lists them all)"
    message = str(error["msg"]).removeprefix("Value error, ")
    if not where:
        return message
    return f"{where}: {message[0].lower() + message[1:]}, not {error['input']!r}"
