"""Checkpoints that survive a crash, a full disk and a flipped bit, and never run code.

A checkpoint is an ordinary PyTorch file (a ZIP archive) whose ZIP comment is a seal::

    keisei checkpoint format 001 sha256 <64 hex digits>

The SHA-256 is of every byte of the file before those digits, so a cut or changed file is always
noticed. ``torch.load(path, weights_only=True)`` and ``unzip -z`` read the same file.

Inside is one nested dict of tensors and plain Python values. What PyTorch's safe loader cannot
carry by itself, NumPy arrays and bytes, is a small tagged dict around a uint8 tensor::

    {"__keisei__": "numpy", "dtype": "<u2", "shape": [3, 4], "data": tensor(uint8)}
    {"__keisei__": "bytes", "data": tensor(uint8)}

Tensors come back on the CPU without gradient, NumPy numbers as Python numbers, every kind of dict
as a plain dict; all else comes back as it was.
"""

import contextlib
import errno
import hashlib
import io
import logging
import os
import pickle
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import psutil
import torch

from keisei.errors import KeiseiError
from keisei.files import open_regular, replace_file

FORMAT = 1

_log = logging.getLogger(__name__)

_TAG = "__keisei__"
_SEAL = re.compile(rb"keisei checkpoint format (\d{3}) sha256 ([0-9a-f]{64})\Z")
_SEAL_LENGTH = len(b"keisei checkpoint format 001 sha256 ") + 64
_MAX_PICKLE = 16 * 1024 * 1024  # bytes of all that is not a tensor or an array
_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


class CheckpointError(KeiseiError):
    """A checkpoint could not be written or read; the message names the file and the reason."""


@contextlib.contextmanager
def understanding(problem: str) -> Iterator[None]:
    """Turn whatever goes wrong with what is in a checkpoint into one sentence.

    It may be of other settings or of another Keisei, and a stranger may have sealed anything.
    """
    try:
        yield
    except KeiseiError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        if isinstance(error, KeyError):
            reason = f"it has no {reason}"
        raise CheckpointError(f"{problem}: {reason[:500]}") from error


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write `state` to `path` so that, whatever happens, the old file or the new one is there."""
    data = _to_bytes(state)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, data)
    except OSError as error:
        problem = _why_not_written(error, path.parent, len(data))
        raise CheckpointError(f"checkpoint {path} could not be written: {problem}") from error


def check_storable(state: dict[str, Any], name: str) -> None:
    """Refuse what a checkpoint cannot hold; `name` is what it is called."""
    try:
        _encode(state, name)
    except TypeError as error:
        raise CheckpointError(
            f"{error}; it may hold tensors, NumPy arrays, numbers, text, lists and dicts"
        ) from error


def load_checkpoint(path: Path, limit: int | None = None) -> dict[str, Any]:
    """Read what `save_checkpoint` wrote, after checking that not one byte of it has changed.

    A file of more than `limit` bytes is refused.
    """
    with _open_sealed(path, limit) as file:
        try:
            _check_archive(file)
            # Safe for a stranger's file: only tensors and plain values are built, never objects.
            tree = torch.load(file, map_location="cpu", weights_only=True)
            state = _Decoder(file.seek(0, os.SEEK_END)).decode(tree)
        except pickle.UnpicklingError as error:
            raise CheckpointError(
                f"checkpoint {path} is refused: it holds objects that could run code when loaded"
            ) from error
        except Exception as error:
            raise CheckpointError(f"checkpoint {path} cannot be decoded: {error}") from error
    if not isinstance(state, dict):
        raise CheckpointError(f"checkpoint {path} is not a checkpoint: it does not hold a dict")
    return state


def step_of(path: Path) -> int:
    """The step of a checkpoint of a store, which its name tells.

    >>> step_of(Path("checkpoints/step_000000123456.pt"))
    123456
    """
    return int(path.stem.removeprefix("step_"))


class CheckpointStore:
    """The checkpoints of one run: a folder of ``step_000000123456.pt``, the newest `keep` of them.

    One process at a time writes to a folder (see `Run.lock`); any number may read.
    """

    def __init__(self, folder: Path, keep: int = 5) -> None:
        if keep < 1:
            raise ValueError(f"keep must be at least 1, not {keep}")
        self.folder = folder
        self.keep = keep

    def paths(self) -> list[Path]:
        """All checkpoints, oldest first."""
        return sorted(self.folder.glob(f"step_{'[0-9]' * 12}.pt"))

    def save(self, step: int, state: dict[str, Any]) -> Path:
        """Write the checkpoint of `step`; only when it is safely there are old ones removed."""
        if not 0 <= step < 10**12:
            raise ValueError(f"a step has at most 12 digits and no sign: {step}")
        path = self.folder / f"step_{step:012d}.pt"
        self._remove_leftovers()
        try:
            save_checkpoint(path, state)
        except CheckpointError as error:
            raise CheckpointError(f"{error}; {self._last_good()}") from error
        self._set_aside_later_than(path)
        for old in self.paths()[: -self.keep]:
            _try_to(old.unlink, f"remove the old checkpoint {old}")
        return path

    def latest(self, limit: int | None = None) -> tuple[Path, dict[str, Any]]:
        """The newest whole checkpoint; a damaged one is named in a warning and passed by.

        So is one of more than `limit` bytes.
        """
        problems = []
        for path in reversed(self.paths()):
            try:
                state = load_checkpoint(path, limit)
            except CheckpointError as error:
                problems.append(str(error))
                continue
            for problem in problems:
                _log.warning("%s; using %s instead", problem, path.name)
            return path, state
        if not problems:
            raise CheckpointError(f"there is no checkpoint in {self.folder}")
        raise CheckpointError(
            f"no checkpoint in {self.folder} is usable: {'; '.join(problems)}; restore one from a "
            "copy, or remove them: without any, the run starts from the beginning"
        )

    def _last_good(self) -> str:
        for path in reversed(self.paths()):
            with contextlib.suppress(CheckpointError):
                _open_sealed(path).close()
                return f"the last good checkpoint is {path}"
        return "there is no earlier good checkpoint"

    def _set_aside_later_than(self, path: Path) -> None:
        """Rename checkpoints of later steps: steps only grow, so they are of an abandoned past.

        A training that went back to an older checkpoint would otherwise resume from them, and
        pruning would keep them in place of what it has just written.
        """
        for later in self.paths():
            if later.name > path.name:
                aside = _free_name(later.with_name(later.name + ".set-aside"))
                _log.warning("%s is later than %s and is set aside as %s", later, path, aside)
                _try_to(partial(os.replace, later, aside), f"set {later} aside")

    def _remove_leftovers(self) -> None:
        """Remove what killed writers left half written (see `replace_file`)."""
        for leftover in self.folder.glob(".step_*.pt.*.tmp"):
            pid = leftover.name.split(".")[-2]
            # Ours is a former process of this number, or a failed save of ours.
            if pid == str(os.getpid()) or (pid.isdecimal() and not psutil.pid_exists(int(pid))):
                _try_to(leftover.unlink, f"remove the unfinished file {leftover}")


def _to_bytes(state: dict[str, Any]) -> memoryview:
    buffer = io.BytesIO()
    torch.save(_encode(state, "state"), buffer)
    # The archive ends with the length of its comment, so far none: fill in length and comment.
    buffer.seek(-2, os.SEEK_END)
    if buffer.read() != b"\0\0":
        raise RuntimeError("torch.save wrote an archive that already has a comment")
    buffer.seek(-2, os.SEEK_END)
    buffer.write(_SEAL_LENGTH.to_bytes(2, "little"))
    buffer.write(b"keisei checkpoint format %03d sha256 " % FORMAT)
    digest = hashlib.sha256(buffer.getbuffer()).hexdigest()
    buffer.write(digest.encode())
    return buffer.getbuffer()


def _open_sealed(path: Path, limit: int | None = None) -> BinaryIO:
    """Open a checkpoint file whose seal is right."""
    try:
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(open_regular(path, limit))
            _check_seal(path, file)
            file.seek(0)
            stack.pop_all()
            return file
    except FileNotFoundError:
        raise CheckpointError(f"checkpoint {path} is missing") from None
    except OSError as error:
        raise CheckpointError(f"checkpoint {path} cannot be read: {error.strerror}") from error


def _check_seal(path: Path, file: BinaryIO) -> None:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _SEAL_LENGTH, 0))
    seal = _SEAL.search(file.read())
    file.seek(0)
    if seal is None:
        if b"PK\3\4".startswith(file.read(4)):
            raise CheckpointError(
                f"checkpoint {path} is truncated, or not a Keisei checkpoint: "
                f"its {size:,} bytes do not end with a seal"
            )
        raise CheckpointError(
            f"checkpoint {path} is not a Keisei checkpoint, or its beginning is lost"
        )
    digest = hashlib.sha256()
    while left := size - 64 - file.tell():
        digest.update(file.read(min(left, 1 << 20)) or bytes(left))  # cut meanwhile: it is wrong
    if digest.hexdigest().encode() != seal[2]:
        raise CheckpointError(f"checkpoint {path} is corrupt: its bytes do not match its SHA-256")
    if int(seal[1]) > FORMAT:
        raise CheckpointError(
            f"checkpoint {path} has the newer format {int(seal[1])}; "
            f"this Keisei reads up to {FORMAT}: update Keisei to use it"
        )


def _encode(value: Any, where: str) -> Any:
    """`value` made of nothing but what PyTorch's safe loader takes back."""
    if isinstance(value, (np.number, np.bool_)):
        value = value.item()
    # Exact types: a subclass (an enum, a named tuple) would be pickled as code to look up.
    if type(value) in (str, float, bool, type(None)):
        return value
    if type(value) is int and value.bit_length() < 2000:  # the safe loader's limit is 255 bytes
        return value
    if type(value) in (list, tuple):
        return type(value)(_encode(item, f"{where}[{i}]") for i, item in enumerate(value))
    if isinstance(value, dict):
        if _TAG in value:
            raise TypeError(f"{where} has the reserved key {_TAG!r}")
        return {
            _encode(key, f"a key of {where}"): _encode(item, f"{where}[{key!r}]")
            for key, item in value.items()
        }
    if isinstance(value, bytes):
        return {_TAG: "bytes", "data": _bytes_to_tensor(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufcSUmM" and value.dtype.itemsize:
        data = _bytes_to_tensor(value.tobytes())
        return {_TAG: "numpy", "dtype": value.dtype.str, "shape": list(value.shape), "data": data}
    if isinstance(value, torch.Tensor) and value.layout == torch.strided:
        tensor = value.detach().cpu()
        # A view would be saved with the whole storage behind it.
        is_view = tensor.untyped_storage().nbytes() != tensor.numel() * tensor.element_size()
        return tensor.clone() if is_view else tensor
    raise TypeError(f"a checkpoint cannot hold {where}, a {type(value).__name__}: {value!r:.80}")


def _check_archive(file: BinaryIO) -> None:
    """Refuse an archive that unpacks to more than it is: ours is not compressed."""
    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
    file.seek(0)
    plain = sum(entry.file_size for entry in entries if "/data/" not in entry.filename)
    packed = any(entry.compress_type != zipfile.ZIP_STORED for entry in entries)
    if packed or plain > _MAX_PICKLE or sum(entry.file_size for entry in entries) > size:
        raise ValueError("its archive unpacks to more than a checkpoint holds")


class _Decoder:
    """Undoes `_encode`.

    A small file could unfold to any size, by lists that hold the same list many times or tensors
    that repeat a few bytes. What we wrote is never larger than its file.
    """

    def __init__(self, size: int) -> None:
        self._left = 4 * size  # two names of one tensor are one in the file

    def decode(self, tree: Any) -> Any:
        is_tensor = isinstance(tree, torch.Tensor)
        if is_tensor and (tree.layout != torch.strided or tree.device.type != "cpu"):
            raise ValueError(f"it holds a tensor of another kind ({tree.layout}, {tree.device})")
        self._left -= tree.numel() * tree.element_size() if is_tensor else 1
        if self._left < 0:
            raise ValueError("it unfolds to more than its file holds")
        if isinstance(tree, (list, tuple)):
            return type(tree)(self.decode(item) for item in tree)
        if not isinstance(tree, dict):
            return tree
        if _TAG not in tree:
            return {key: self.decode(item) for key, item in tree.items()}
        data = bytearray(self.decode(tree["data"]).numpy().tobytes())
        if tree[_TAG] == "bytes":
            return bytes(data)
        return np.frombuffer(data, dtype=np.dtype(tree["dtype"])).reshape(tree["shape"])


def _bytes_to_tensor(data: bytes) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(bytearray(data), dtype=np.uint8))


def _why_not_written(error: OSError, folder: Path, needed: int) -> str:
    problem = error.strerror or str(error)
    if error.errno in _NO_ROOM:
        with contextlib.suppress(OSError):
            free = shutil.disk_usage(folder).free
            problem += f" ({needed:,} bytes needed, {free:,} free)"
    return problem


def _free_name(path: Path) -> Path:
    """The path, or with a number if it is taken."""
    free, number = path, 1
    while free.exists():
        number += 1
        free = path.with_name(f"{path.name}-{number}")
    return free


def _try_to(action: Callable[[], object], what: str) -> None:
    """Tidying up may fail; that does not affect the checkpoint that was saved."""
    try:
        action()
    except OSError as error:
        _log.warning("could not %s: %s", what, error)


def trained_weights(state: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The weights to play with: the averaged ones where the run kept them."""
    weights: dict[str, torch.Tensor] = state["agent"].get("average", state["agent"]["network"])
    return weights
