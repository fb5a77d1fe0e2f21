"""A checkpoint is whole or refused; whatever is killed, filled up or damaged, one good remains."""

import logging
import os
import random
import subprocess
import sys
from collections import OrderedDict
from enum import IntEnum
from pathlib import Path

import numpy as np
import pytest
import torch

from keisei.runs import checkpoint
from keisei.runs.checkpoint import (
    CheckpointError,
    CheckpointStore,
    load_checkpoint,
    save_checkpoint,
)
from tests.training.conftest import run_python
from tests.web.hostile import spoil

STATE = {"weights": torch.arange(200.0), "rng": np.arange(20, dtype=np.uint64), "step": 7}

ARRAYS = [
    np.array([0, 1, 65535], dtype=np.uint16),
    np.array([[0, 2**64 - 1]], dtype=np.uint64),
    np.array([-(2**63), 2**63 - 1]),
    np.array([1.5, np.nan, -np.inf], dtype=np.float16),
    np.array([True, False]),
    np.array([1 + 2j], dtype=np.complex64),
    np.array(["形勢", ""]),
    np.array([1, 2], dtype=">i4"),
    np.array(3.25),
    np.zeros((0, 3), dtype=np.float32),
    np.arange(12, dtype=np.int8).reshape(3, 4)[:, ::2],
]


def temporary_files(folder: Path) -> list[Path]:
    return list(folder.glob(".*"))


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}-{a.shape}")
def test_an_array_comes_back_with_its_dtype_shape_and_values(tmp_path, array):
    save_checkpoint(tmp_path / "a.pt", {"array": array})
    back = load_checkpoint(tmp_path / "a.pt")["array"]
    assert type(back) is np.ndarray
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert back.tobytes() == array.tobytes()
    assert back.flags.writeable


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.uint8, torch.uint16, torch.uint64, torch.bool]
)
def test_a_tensor_comes_back_with_its_dtype_and_values(tmp_path, dtype):
    tensor = torch.tensor([[0, 1, 1]]).to(dtype)
    save_checkpoint(tmp_path / "a.pt", {"tensor": tensor})
    back = load_checkpoint(tmp_path / "a.pt")["tensor"]
    assert back.dtype == dtype
    assert torch.equal(back.to(torch.float32), tensor.to(torch.float32))


def test_plain_values_come_back_as_they_were(tmp_path):
    state = {
        "a": [1, -2.5, "形勢", True, None, (), (1, (2,)), b"", b"\x00\xff"],
        "b": {3: {"deep": 2**127}, "inf": float("inf")},
    }
    save_checkpoint(tmp_path / "a.pt", state)
    assert load_checkpoint(tmp_path / "a.pt") == state


def test_generators_and_an_optimizer_go_on_as_if_nothing_had_happened(tmp_path):
    rng, net = np.random.default_rng(3), torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(3)).sum().backward()
    optimizer.step()
    state = {
        "numpy": rng.bit_generator.state,
        "python": random.getstate(),
        "torch": torch.get_rng_state(),
        "net": net.state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    save_checkpoint(tmp_path / "a.pt", state)
    expected = rng.random(), random.random(), torch.rand(1)

    back = load_checkpoint(tmp_path / "a.pt")
    rng.bit_generator.state = back["numpy"]
    random.setstate(back["python"])
    torch.set_rng_state(back["torch"])
    assert (rng.random(), random.random(), torch.rand(1)) == expected
    net.load_state_dict(back["net"])
    optimizer.load_state_dict(back["optimizer"])
    assert optimizer.state_dict()["state"][0]["step"] == 1


def test_numpy_numbers_come_back_as_python_numbers(tmp_path):
    save_checkpoint(tmp_path / "a.pt", {"x": np.float64(1.5), "n": np.int64(3), "b": np.bool_(1)})
    back = load_checkpoint(tmp_path / "a.pt")
    assert back == {"x": 1.5, "n": 3, "b": True}
    assert [type(value) for value in back.values()] == [float, int, bool]


def test_a_view_is_saved_without_the_storage_behind_it(tmp_path):
    save_checkpoint(tmp_path / "a.pt", {"row": torch.zeros(1000, 1000)[5]})
    assert (tmp_path / "a.pt").stat().st_size < 20_000


class Colour(IntEnum):
    BLACK = 0


@pytest.mark.parametrize(
    "value", [Colour.BLACK, object(), {1}, np.array([object()]), 1 << 5000, {"__keisei__": 1}]
)
def test_what_could_not_be_read_back_is_refused_when_saving_and_named(tmp_path, value):
    with pytest.raises(TypeError, match=r"state\['deep'\]\[1\]"):
        save_checkpoint(tmp_path / "a.pt", {"deep": [1, value]})
    assert list(tmp_path.iterdir()) == []


def test_plain_pytorch_reads_the_file_too(tmp_path):
    save_checkpoint(tmp_path / "a.pt", OrderedDict(w=torch.ones(3)))
    back = torch.load(tmp_path / "a.pt", weights_only=True)
    assert torch.equal(back["w"], torch.ones(3))


def test_every_truncation_is_noticed(tmp_path):
    path = tmp_path / "a.pt"
    save_checkpoint(path, STATE)
    whole = path.read_bytes()
    for length in [0, 1, 3, 4, 100, len(whole) // 2, *range(len(whole) - 130, len(whole))]:
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match=r"a\.pt is truncated"):
            load_checkpoint(path)


def test_every_flipped_bit_is_noticed(tmp_path):
    path = tmp_path / "a.pt"
    save_checkpoint(path, STATE)
    whole = path.read_bytes()
    dice = random.Random(1)
    places = dice.sample(range(len(whole)), 50)
    for place in [0, 1, *places, *range(len(whole) - 110, len(whole))]:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << dice.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"a\.pt"):
            load_checkpoint(path)


def test_appended_bytes_are_noticed(tmp_path):
    save_checkpoint(tmp_path / "a.pt", STATE)
    with (tmp_path / "a.pt").open("ab") as file:
        file.write(b"\0")
    with pytest.raises(CheckpointError, match=r"do not end with a seal"):
        load_checkpoint(tmp_path / "a.pt")


def test_a_missing_file_a_folder_and_a_strangers_file_are_told_apart(tmp_path):
    (tmp_path / "notes.pt").write_text("not a checkpoint at all")
    with pytest.raises(CheckpointError, match=r"gone\.pt is missing"):
        load_checkpoint(tmp_path / "gone.pt")
    with pytest.raises(CheckpointError, match="cannot be read: Is a directory"):
        load_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match=r"notes\.pt is not a Keisei checkpoint"):
        load_checkpoint(tmp_path / "notes.pt")


def test_a_newer_format_is_named_as_such(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "FORMAT", 2)
    save_checkpoint(tmp_path / "a.pt", STATE)
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match="newer format 2; this Keisei reads up to 1"):
        load_checkpoint(tmp_path / "a.pt")


class Harmful:
    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (str(self.trace),)


def test_code_in_a_file_is_refused_and_never_run_even_under_a_right_seal(tmp_path, monkeypatch):
    trace, path = tmp_path / "it-ran", tmp_path / "a.pt"
    torch.save({"x": Harmful(trace)}, path)
    with pytest.raises(CheckpointError):
        load_checkpoint(path)

    monkeypatch.setattr(checkpoint, "_encode", lambda state, where: state)
    save_checkpoint(path, {"x": Harmful(trace)})
    with pytest.raises(CheckpointError, match="could run code"):
        load_checkpoint(path)
    assert not trace.exists()

    torch.load(path, weights_only=False)  # the bait is real
    assert trace.exists()


def test_only_the_newest_are_kept(tmp_path):
    store = CheckpointStore(tmp_path, keep=2)
    for step in (5, 10, 1_000_000):
        store.save(step, {"step": step})
    names = [path.name for path in store.paths()]
    assert names == ["step_000000000010.pt", "step_000001000000.pt"]
    path, state = store.latest()
    assert path.name == names[-1]
    assert state == {"step": 1_000_000}


def test_latest_passes_by_damaged_checkpoints_and_names_them(tmp_path, caplog):
    store = CheckpointStore(tmp_path)
    first, second, third = (store.save(step, {"step": step}) for step in (1, 2, 3))
    third.write_bytes(third.read_bytes()[:-10])
    damaged = bytearray(second.read_bytes())
    damaged[200] ^= 4
    second.write_bytes(damaged)
    with caplog.at_level(logging.WARNING):
        assert store.latest() == (first, {"step": 1})
    assert f"{third} is truncated" in caplog.text
    assert f"{second} is corrupt" in caplog.text
    assert caplog.text.count(f"using {first.name} instead") == 2


def test_without_any_good_checkpoint_each_files_problem_is_listed(tmp_path):
    store = CheckpointStore(tmp_path / "checkpoints")
    with pytest.raises(CheckpointError, match="there is no checkpoint in"):
        store.latest()
    store.save(1, STATE).write_bytes(b"")
    store.save(2, STATE).write_bytes(b"something else")
    with pytest.raises(CheckpointError, match=r"step_0+2\.pt is not .*step_0+1\.pt is truncated"):
        store.latest()


def test_the_only_checkpoint_being_damaged_is_said_once_with_what_to_do(tmp_path, caplog):
    store = CheckpointStore(tmp_path)
    store.save(1, STATE).write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"truncated.*; restore one from a copy, or remove"):
        store.latest()
    assert caplog.text == ""


def test_after_going_back_to_an_older_checkpoint_the_later_ones_are_set_aside(tmp_path):
    store = CheckpointStore(tmp_path, keep=1)
    store.save(200, {"step": 200})
    newest = store.save(150, {"step": 150})
    assert store.paths() == [newest]
    assert store.latest() == (newest, {"step": 150})
    assert load_checkpoint(tmp_path / "step_000000000200.pt.set-aside") == {"step": 200}


def test_what_was_set_aside_stays_when_the_same_step_is_set_aside_again(tmp_path):
    store = CheckpointStore(tmp_path)
    for time in (1, 2, 3):
        store.save(200, {"time": time})
        store.save(150, {})
    for suffix, time in (("", 1), ("-2", 2), ("-3", 3)):
        aside = tmp_path / f"step_000000000200.pt.set-aside{suffix}"
        assert load_checkpoint(aside) == {"time": time}


def test_leftovers_of_dead_writers_are_removed_and_those_of_living_ones_kept(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (tmp_path / f".step_000000000001.pt.{dead.pid}.tmp").write_bytes(b"half")
    living = tmp_path / f".step_000000000001.pt.{os.getppid()}.tmp"
    living.write_bytes(b"half")
    CheckpointStore(tmp_path).save(2, STATE)
    assert temporary_files(tmp_path) == [living]


SAVE_FOR_EVER = """
import itertools, sys
from pathlib import Path
import torch
from keisei.runs.checkpoint import CheckpointStore
torch.set_num_threads(1)
store = CheckpointStore(Path(sys.argv[1]), keep=2)
for step in itertools.count(int(sys.argv[2])):
    store.save(step, {"weights": torch.full((500_000,), float(step)), "step": step})
    print(step, flush=True)
"""


def test_kill_9_while_saving_always_leaves_a_good_latest_checkpoint(tmp_path):
    folder = tmp_path / "checkpoints"
    store, step = CheckpointStore(folder, keep=2), 0
    for lines in (1, 2, 5):
        writer = run_python(tmp_path, SAVE_FOR_EVER, folder, step + 1)
        for _ in range(lines):
            step = int(writer.stdout.readline())
        writer.kill()
        writer.wait()
        path, state = store.latest()
        assert path == store.paths()[-1]
        assert state["step"] >= step
        assert torch.equal(state["weights"], torch.full((500_000,), float(state["step"])))
        step = state["step"]
    store.save(step + 1, STATE)
    assert temporary_files(folder) == []


def test_a_full_disk_is_reported_and_the_last_good_checkpoint_stays(tiny_disk):
    store = CheckpointStore(tiny_disk, keep=1)
    good = store.save(1, STATE)
    with pytest.raises(CheckpointError) as caught:
        store.save(2, {"weights": torch.zeros(1_000_000)})
    message = str(caught.value)
    assert "step_000000000002.pt could not be written: No space left on device" in message
    assert "(4,00" in message
    assert "bytes needed" in message
    assert f"the last good checkpoint is {good}" in message
    assert list(tiny_disk.iterdir()) == [good]
    assert store.latest()[0] == good


SAVE_TOO_MUCH = """
import resource, signal, sys
from pathlib import Path
import torch
from keisei.runs.checkpoint import CheckpointError, CheckpointStore
store = CheckpointStore(Path(sys.argv[1]), keep=1)
store.save(1, {"step": 1})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    store.save(2, {"weights": torch.zeros(1_000_000)})
except CheckpointError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits on file size are Unix's")
def test_a_file_that_may_not_grow_is_reported_and_the_last_good_checkpoint_stays(tmp_path):
    message, errors = run_python(tmp_path, SAVE_TOO_MUCH, tmp_path).communicate()
    assert "step_000000000002.pt could not be written: File too large" in message, errors
    assert "step_000000000001.pt" in message
    assert temporary_files(tmp_path) == []
    assert CheckpointStore(tmp_path).latest()[1] == {"step": 1}


def test_a_folder_that_cannot_be_is_reported(tmp_path):
    (tmp_path / "file").write_text("in the way")
    store = CheckpointStore(tmp_path / "file" / "checkpoints")
    with pytest.raises(CheckpointError, match=r"Not a directory; there is no earlier good"):
        store.save(1, STATE)


@pytest.mark.parametrize(
    "name",
    ["checkpoint_laughs", "checkpoint_repeats", "checkpoint_packed", "pipe-checkpoints-step-pt"],
)
def test_a_small_file_cannot_unfold_to_a_giant_nor_make_anybody_wait(tmp_path, name):
    (tmp_path / "checkpoints").mkdir()
    spoil(tmp_path, name)
    with pytest.raises(CheckpointError, match=r"unfolds to more|unpacks to more|not a regular"):
        load_checkpoint(tmp_path / "checkpoints/step_000000009999.pt")


def test_a_file_above_the_limit_is_not_read(tmp_path):
    save_checkpoint(tmp_path / "a.pt", STATE)
    size = (tmp_path / "a.pt").stat().st_size
    assert load_checkpoint(tmp_path / "a.pt", size)
    with pytest.raises(CheckpointError, match=f"it has more than {size - 1:,} bytes"):
        load_checkpoint(tmp_path / "a.pt", size - 1)


def test_a_checkpoint_and_its_name_in_the_folder_are_synced(tmp_path, monkeypatch):
    synced, fsync = [], os.fsync

    def watched(descriptor):
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    path = CheckpointStore(tmp_path).save(7, STATE)
    data, folder = synced
    assert Path(data).name.startswith(f".{path.name}.")  # written aside
    assert Path(folder) == tmp_path
