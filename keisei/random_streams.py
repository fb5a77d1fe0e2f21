"""Random numbers for many games at once, one stream a game.

What a game draws must not depend on how many games run beside it. So each game has a SplitMix64
generator of its own, and all of them step together as one array.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def _mix(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    mixed: npt.NDArray[np.uint64] = z ^ (z >> np.uint64(31))
    return mixed


def _unit(state: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    numbers: npt.NDArray[np.float64] = (_mix(state) >> np.uint64(11)) * 2.0**-53
    return numbers


class RandomStreams:
    """Streams `first` to `first + count - 1` of a seed.

    >>> few, many = RandomStreams(seed=1, count=2), RandomStreams(seed=1, count=9)
    >>> bool((few.uniform() == many.uniform()[:2]).all())
    True
    """

    def __init__(self, seed: int, count: int, first: int = 0) -> None:
        start = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
        streams = np.arange(first, first + count, dtype=np.uint64)
        self.state = _mix(start + _mix(streams + _GOLDEN))

    def uniform(self) -> npt.NDArray[np.float64]:
        """The next number in [0, 1) of every stream."""
        self.state = self.state + _GOLDEN
        return _unit(self.state)

    def uniforms(self, count: int) -> npt.NDArray[np.float64]:
        """The next `count` numbers of every stream at once [count, streams].

        >>> one, many = RandomStreams(seed=1, count=2), RandomStreams(seed=1, count=2)
        >>> bool((one.uniforms(3) == [many.uniform() for _ in range(3)]).all())
        True
        """
        states = self.state + np.arange(1, count + 1, dtype=np.uint64)[:, None] * _GOLDEN
        if count:
            self.state = states[-1]
        return _unit(states)

    def uniform_of(self, stream: int) -> float:
        """The next number in [0, 1) of one stream; the others stay where they are."""
        self.state[stream : stream + 1] += _GOLDEN
        return float(_unit(self.state[stream : stream + 1])[0])

    def uniforms_of_each(self, counts: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
        """The next numbers of every stream, as many as its count, end to end.

        >>> one, many = RandomStreams(seed=1, count=2), RandomStreams(seed=1, count=2)
        >>> (a, b), (c, _) = many.uniforms(2).tolist()
        >>> one.uniforms_of_each(np.array([2, 1])).tolist() == [a, c, b]
        True
        """
        ends = np.cumsum(counts)
        numbers = np.arange(1, ends[-1] + 1) - np.repeat(ends - counts, counts)
        states = np.repeat(self.state, counts) + numbers.astype(np.uint64) * _GOLDEN
        self.state = self.state + counts.astype(np.uint64) * _GOLDEN
        return _unit(states)
