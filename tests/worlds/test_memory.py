import threading

import numpy as np
import pytest

from keisei.worlds.memory import NO_ACTION, Buffer, MemoryMisuse, ThreadSafeBuffer


def filled(turns, capacity=5, episode=4, kind=Buffer):
    memory = kind(capacity, copies=2, shape=(1,), dtype=np.int64)
    for turn in range(turns):
        value = np.array([turn, turn + 1000])
        memory.add(value[:, None], value, value, [turn % episode == episode - 1] * 2)
    return memory


@pytest.mark.parametrize("turns", range(2, 14))
def test_what_follows_a_step_is_the_next_turn_of_the_same_copy(turns):
    batch = filled(turns).sample(500, np.random.default_rng(1))
    assert np.array_equal(batch["state"][:, 0] + 1, batch["next_state"][:, 0])
    assert np.array_equal(batch["action"], batch["state"][:, 0])


def test_an_episodes_end_is_remembered():
    batch = filled(20, capacity=20).sample(500, np.random.default_rng(1))
    assert np.array_equal(batch["done"], batch["action"] % 1000 % 4 == 3)


@pytest.mark.parametrize("turns", range(1, 12))
def test_beyond_a_cut_comes_what_would_have_been_seen_and_that_is_never_drawn(turns):
    memory = Buffer(6, copies=2, shape=(1,), dtype=np.int64)
    for turn in range(turns):
        memory.add([[turn], [turn]], [turn, turn], [0, 0], [False, False])
        if turn % 3 == 2:  # only the first copy is cut; the second one goes on with 99 as well
            memory.cut([[turn + 100], [99]], [True, False])
    if len(memory) < 2:
        return
    batch = memory.sample(300, np.random.default_rng(1))
    cut, after = batch["action"] % 3 == 2, batch["next_state"][:, 0]
    assert (batch["action"] != NO_ACTION).all()
    assert np.array_equal(after[~cut], batch["action"][~cut] + 1)
    assert set(after[cut]) <= {99, *(batch["action"][cut] + 100)}
    assert np.array_equal(after[cut] >= 100, batch["truncated"][cut])
    assert not batch["done"].any()


def test_a_snapshot_does_not_change_and_restores_the_memory():
    memory = filled(7)
    snapshot = memory.get_buffer_snapshot()
    memory.add([[7], [7]], [7, 7], [7, 7], [False, False])
    twin = Buffer(5, copies=2, shape=(1,), dtype=np.int64)
    twin.load_buffer_snapshot(snapshot)
    expected = filled(7).sample(50, np.random.default_rng(1))
    for name, array in twin.sample(50, np.random.default_rng(1)).items():
        assert np.array_equal(array, expected[name])


@pytest.mark.parametrize("turns", [0, 1, 3, 5, 7, 10])
@pytest.mark.parametrize("capacity", [2, 4, 5, 6, 20])
def test_a_memory_of_another_size_keeps_the_newest_turns_in_their_order(turns, capacity):
    memory = filled(0, capacity)
    memory.load_buffer_snapshot(filled(turns).get_buffer_snapshot())
    kept = min(turns, 5, capacity)
    assert memory.newest(len(memory))["action"][:, 0].tolist() == list(range(turns - kept, turns))
    for turn in range(turns, turns + 9):
        memory.add([[turn], [turn]], [turn, turn], [turn, turn], [False, False])
        newest = memory.newest(len(memory))["action"][:, 0].tolist()
        assert newest == list(range(turn + 1 - min(kept + turn + 1 - turns, capacity), turn + 1))


def test_a_memory_of_other_copies_is_refused():
    with pytest.raises(ValueError, match="cannot hold"):
        Buffer(5, copies=3, shape=(1,)).load_buffer_snapshot(filled(7).get_buffer_snapshot())


def feed_from_threads(memory, threads=2, turns=2000):
    problems, all_here = [], threading.Barrier(threads, timeout=60)

    def feed(number):
        all_here.wait()  # a thread that comes when another has gone may get its number
        try:
            for turn in range(turns):
                value = number * turns + turn
                memory.add(np.full((1, 64), value), [value], [value], [False])
        except MemoryMisuse as problem:
            problems.append(str(problem))

    started = [threading.Thread(target=feed, args=(n,)) for n in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(timeout=60)
    return problems


def test_a_thread_safe_memory_fed_from_two_threads_holds_every_turn_whole():
    memory = ThreadSafeBuffer(4000, copies=1, shape=(64,), dtype=np.int64)
    assert feed_from_threads(memory) == []
    turns = memory.newest(4000)
    assert sorted(turns["action"][:, 0].tolist()) == list(range(4000))
    assert (turns["state"][:, 0] == turns["action"]).all()


def test_a_plain_memory_fed_from_two_threads_says_what_to_do():
    problems = feed_from_threads(Buffer(4000, copies=1, shape=(64,), dtype=np.int64))
    assert problems == ["this memory is fed from two threads: use a ThreadSafeBuffer"]


def test_sampling_from_nothing_is_refused():
    with pytest.raises(MemoryMisuse, match="nothing to sample"):
        filled(1).sample(4, np.random.default_rng(1))
