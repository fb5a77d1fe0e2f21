"""Code of the user's own, by `MODULE:CLASS`; the module may lie in the current folder."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from types import ModuleType
from typing import Any

from keisei.errors import KeiseiError


def load_own(name: str, what: str, example: str, base: type[Any] = object) -> Any:
    """What `MODULE:CLASS` names: a `what`. If it is not there, the error lists those that are.

    >>> load_own("keisei.worlds.tag:Tag", "world", "mushroom:MushroomWorld").name
    'tag'
    """
    module_name, _, class_name = name.partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), class_name)):
        raise KeiseiError(f"{name!r} is not of the form MODULE:CLASS, such as {example}")
    if module_name.endswith(".py"):
        right = f"{module_name.removesuffix('.py')}:{class_name}"
        raise KeiseiError(f"{name!r} names a file, not a module; leave out .py: {right}")
    module = import_own(module_name)
    if not hasattr(module, class_name):
        classes = [value for value in vars(module).values() if isinstance(value, type)]
        there = [
            one.__name__
            for one in classes
            if issubclass(one, base) and one.__module__ == module.__name__
        ]
        raise KeiseiError(
            f"there is no class {class_name} in {getattr(module, '__file__', None) or module}; "
            f"its {what}s: {', '.join(there) or 'none'}"
        )
    return getattr(module, class_name)


def import_own(name: str) -> ModuleType:
    """The module; the path of an installed command does not have the current folder."""
    folder = os.getcwd()
    if not {"", folder} & set(sys.path):
        sys.path.insert(0, folder)  # and it stays: the module may import others later
    importlib.invalidate_caches()  # the file may be newer than this process
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # the user's code: it may raise anything
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and f"{name}.".startswith(f"{missing}."):  # itself, or a package it is in
            raise KeiseiError(
                f"there is no module {name} in {folder}, and none is installed"
            ) from None
        raise KeiseiError(f"{name} cannot be imported: {_explain(error)}") from error


def _explain(error: BaseException) -> str:
    """Where a module failed, and why, in one line."""
    kind = type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}: {kind}: {error.msg}"
    reason = f"{kind}: {' '.join(str(error).split())}"
    frames = traceback.extract_tb(error.__traceback__)
    modules = [frame.filename for frame in frames if frame.name == "<module>"]
    if not modules:
        return reason
    # Of the file that was being imported: what it called may lie deep in a library.
    line = [frame.lineno for frame in frames if frame.filename == modules[-1]][-1]
    return f"{modules[-1]}, line {line}: {reason}"
