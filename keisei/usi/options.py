"""The engine's options, as GUIs see and set them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from keisei.usi.protocol import UsiError


@dataclass
class Option:
    """One option: a `check`, a `spin` (an integer within limits) or a `filename`."""

    name: str
    kind: str
    value: bool | int | str
    least: int = 0
    most: int = 0

    def declare(self) -> str:
        """The line that declares it to a GUI.

        >>> Option("USI_Hash", "spin", 256, 16, 4096).declare()
        'option name USI_Hash type spin default 256 min 16 max 4096'
        """
        text = str(self.value).lower() if self.kind == "check" else str(self.value) or "<empty>"
        limits = f" min {self.least} max {self.most}" if self.kind == "spin" else ""
        return f"option name {self.name} type {self.kind} default {text}{limits}"

    def set(self, text: str) -> None:
        """Set the value from a GUI's text."""
        if self.kind == "check":
            if text not in ("true", "false"):
                raise UsiError(f"{self.name} must be true or false, not {text[:20]!r}")
            self.value = text == "true"
        elif self.kind == "spin":
            if not text.removeprefix("-").isdecimal() or not self.least <= int(text) <= self.most:
                raise UsiError(
                    f"{self.name} must be {self.least} to {self.most}, not {text[:20]!r}"
                )
            self.value = int(text)
        else:
            self.value = "" if text == "<empty>" else text


class Options:
    """All options by name; upper and lower case are the same."""

    def __init__(self, options: Sequence[Option]) -> None:
        self._options = {option.name.lower(): option for option in options}

    def declare(self) -> list[str]:
        """The lines that declare them to a GUI."""
        return [option.declare() for option in self._options.values()]

    def set(self, name: str, text: str) -> None:
        """Set one option; an unknown name is an error."""
        if name.lower() not in self._options:
            raise UsiError(f"unknown option {name[:40]!r}")
        self._options[name.lower()].set(text)

    def number(self, name: str) -> int:
        """The value of a spin, or 0 or 1 for a check."""
        return int(self._options[name.lower()].value)

    def text(self, name: str) -> str:
        """The value as text."""
        return str(self._options[name.lower()].value)


def engine_options(model: str, nodes: int) -> Options:
    """The engine's options."""
    return Options(
        [
            Option("USI_Hash", "spin", 1024, 16, 65536),  # MB for the tree
            Option("USI_Ponder", "check", False),  # say which move to ponder on
            Option("Model", "filename", model),
            Option("Nodes", "spin", nodes, 0, 10**9),  # 0: as many as the time allows
            Option("MultiPV", "spin", 1, 1, 100),  # lines to show
            Option("Threads", "spin", 1, 1, 256),
            Option("MoveOverhead", "spin", 200, 0, 10_000),  # ms lost between GUI and engine
            Option("Resign", "spin", 0, 0, 50),  # resign below this chance to win, in percent
        ]
    )
