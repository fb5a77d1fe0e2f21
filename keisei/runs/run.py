"""A run: the folder with everything that belongs to one training.

::

    runs/20261115-143012/
      config.yaml           all settings, as they were resolved when the run began
      metrics.sqlite        every number, game and event (see metrics.py)
      checkpoints/          step_000000123456.pt (see checkpoint.py)
      games/                game records
      tensorboard/          the same numbers for TensorBoard
      learning_curve.png
      ladder.json           ratings of its checkpoints, if they were rated
      lock                  held by the process that trains; it names that process
      ladder.lock           held by the process that rates it
"""

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from io import FileIO
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from keisei.errors import KeiseiError
from keisei.files import read_regular, replace_file
from keisei.runs.metrics import MetricsReader
from keisei.settings import read_settings

if sys.platform != "win32":
    import fcntl


class RunError(KeiseiError):
    """A run cannot be made, found or used; the message says why and what to do."""


@dataclass
class Run:
    """One run's folder; make it with `Run.create` or `Run.open`."""

    folder: Path

    def __post_init__(self) -> None:
        folder = self.folder
        self.config_path = folder / "config.yaml"
        self.metrics_path = folder / "metrics.sqlite"
        self.checkpoints_dir = folder / "checkpoints"
        self.games_dir = folder / "games"
        self.tensorboard_dir = folder / "tensorboard"
        self.learning_curve_path = folder / "learning_curve.png"
        self.ladder_path = folder / "ladder.json"
        self.lock_path = folder / "lock"

    @classmethod
    def create(cls, root: Path, name: str | None, config_yaml: str) -> "Run":
        """A new run `name` below `root`; without a name, the date and time are its name."""
        if name is not None:
            _check_name(name)
        try:
            root.mkdir(parents=True, exist_ok=True)
            run = cls(_claim_folder(root, name))
            run._make_subfolders()
            run._write_config(config_yaml)  # last: it is what makes a folder a run
        except OSError as error:
            problem = error.strerror or str(error)
            for path in (root, *root.parents):
                if path.is_file():
                    problem = f"{path} is a file, not a folder; move it, or set another runs_dir"
            raise RunError(f"cannot make a run in {root}: {problem}") from error
        return run

    def change_config(self, config_yaml: str) -> None:
        """From now on these are the run's settings, also when it goes on another time."""
        try:
            if config_yaml != self.config_path.read_text(encoding="utf-8"):
                self._write_config(config_yaml)
        except OSError as error:
            raise RunError(f"cannot change the settings {self.config_path}: {error}") from error

    def _write_config(self, config_yaml: str) -> None:
        replace_file(self.config_path, config_yaml.encode())

    @classmethod
    def open(
        cls, path_or_name: str | Path, root: Path = Path("runs"), of_world: bool = False
    ) -> "Run":
        """The run of that name below `root`, or in that folder; of Shogi, or of a world."""
        candidates = [root / path_or_name, Path(path_or_name)]
        # os.path: a name that no file can have (300 letters) is not an error, but no run.
        folder = next((path for path in candidates if os.path.isdir(path)), None)
        if folder is None:
            tried = " and ".join(dict.fromkeys(str(path) for path in candidates))
            raise RunError(f"there is no run {str(path_or_name)!r}: looked for the folder {tried}")
        run = cls(folder)
        missing = [
            path.name for path in (run.config_path, run.checkpoints_dir) if not path.exists()
        ]
        if missing:
            raise RunError(f"{folder} is not a run: it has no {' and no '.join(missing)}")
        run._check_kind(str(path_or_name), of_world)
        return run

    def _check_kind(self, name: str, of_world: bool) -> None:
        """Both kinds have the same folders: commands for the one make no sense of the other."""
        world = world_of(read_settings(self.config_path, "env:"))
        if world is not None and not of_world:
            raise RunError(
                f"{name} is a run of the world {world}: use keisei worlds watch {name}, or "
                f"keisei worlds train --resume {name}"
            )
        if of_world and world is None:
            raise RunError(
                f"{name} is a run of Shogi: use keisei play {name}, or keisei train --resume {name}"
            )

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    def metric_names(self) -> list[str]:
        """The names of all metrics, sorted."""
        with MetricsReader(self.metrics_path) as reader:
            return reader.names()

    def metrics(self, name: str) -> Mapping[str, Any]:
        """A metric's columns "step" and "value": a DataFrame if pandas is installed, else arrays.

        `win_rate/random` is short for `wins against random`.

            wins = Run.open("overnight").metrics("win_rate/random")
            print(wins["step"][-1], wins["value"][-1])
        """
        if name.startswith("win_rate/"):
            name = f"wins against {name.removeprefix('win_rate/')}"
        with MetricsReader(self.metrics_path) as reader:
            series = reader.series(name)
            if not series:
                known = ", ".join(reader.names()) or "none yet"
                raise RunError(f"the run {self.name} has no metric {name!r}; it has: {known}")
        steps, values = zip(*series, strict=True)
        columns = {"step": np.array(steps), "value": np.array(values, dtype=np.float64)}
        try:
            from pandas import DataFrame
        except ImportError:
            return columns
        frame: Mapping[str, Any] = DataFrame(columns)
        return frame

    def lock(self) -> contextlib.AbstractContextManager[None]:
        """Hold the run while training, so that no two processes write to it.

        The operating system lets go when the process ends, however it ends. A process that is
        started by fork shares the lock; one that is started by spawn does not.
        """
        return self._hold(self.lock_path, "training")

    def lock_ladder(self) -> contextlib.AbstractContextManager[None]:
        """Hold the run's ladder while its players play: two would each lose the other's games."""
        return self._hold(self.folder / "ladder.lock", "ladder")

    @contextlib.contextmanager
    def _hold(self, path: Path, what: str) -> Iterator[None]:
        with contextlib.ExitStack() as held:
            try:
                file = held.enter_context(path.open("ab+", buffering=0))
                _take(file, self.folder, what)
                file.truncate(0)
                file.write(b"%d\n" % os.getpid())
                self._make_subfolders()  # of an old run, some may have been removed by hand
            except OSError as error:
                raise RunError(f"cannot write to the run {self.folder}: {error}") from error
            yield

    def _make_subfolders(self) -> None:
        for folder in (self.checkpoints_dir, self.games_dir, self.tensorboard_dir):
            folder.mkdir(exist_ok=True)


def world_of(settings: Mapping[str, Any]) -> str | None:
    """The world that a run's settings name; None for a run of Shogi."""
    return str(settings["world"]) if "world" in settings else None


def is_training(folder: Path) -> bool:
    """Does a process hold the lock of the run in `folder`?

    It only looks: were the lock tried, a training that starts at that moment would be refused.
    """
    lock = folder / "lock"
    try:
        pid, inode = int(read_regular(lock, 100, follow=False)), lock.stat().st_ino
    except (OSError, ValueError):
        return False
    if not psutil.pid_exists(pid):
        return False
    try:
        locks = Path("/proc/locks").read_text()
    except OSError:  # not Linux; after a crash, a new process may have the same number
        return True
    # "1: FLOCK  ADVISORY  WRITE 19459 fe:00:5636381 0 EOF"
    held = (line.split() for line in locks.splitlines())
    return any(
        row[1] == "FLOCK" and row[4] == str(pid) and row[5].rpartition(":")[2] == str(inode)
        for row in held
        if len(row) > 5
    )


def _check_name(name: str) -> None:
    if not name.strip():
        raise RunError("a run's name must not be empty")
    if name[0] in ".-":
        raise RunError(f"a run's name must not begin with '{name[0]}': {name!r}")
    if any(letter in "/\\:" or not letter.isprintable() for letter in name):
        raise RunError(f"a run's name must be one plain file name, without / \\ or ':': {name!r}")


def _claim_folder(root: Path, name: str | None) -> Path:
    """Make the run's folder; mkdir fails if it exists, so two processes never get the same one."""
    if name is not None:
        try:
            (root / name).mkdir()
        except FileExistsError:
            raise RunError(
                f"the run {root / name} already exists: continue it with --resume, or choose "
                "another name"
            ) from None
        return root / name
    now = datetime.now().strftime("%Y%m%d-%H%M%S")
    for number in count(1):
        folder = root / (now if number == 1 else f"{now}-{number}")
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            break
    return folder


def _take(file: FileIO, folder: Path, what: str) -> None:
    if sys.platform == "win32":  # there runs are not locked
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        pid = file.read().decode().strip() or "unknown"
        raise RunError(
            f"the run {folder} is in use by another {what} (process {pid}): "
            "wait until it ends, or stop it"
        ) from None
