import pytest

from keisei.usi.protocol import Go, read_go


@pytest.mark.parametrize(
    ("go", "turn", "overhead", "seconds"),
    [
        (Go(btime=60_000, wtime=1000), "black", 0, 1.5),  # a fortieth of the mover's own clock
        (Go(btime=60_000, wtime=1000), "white", 0, 0.025),
        (Go(btime=60_000, wtime=60_000, binc=5000, winc=1000), "black", 0, 6.5),
        (Go(btime=60_000, wtime=60_000, binc=5000, winc=1000), "white", 0, 2.5),
        (Go(btime=60_000, wtime=60_000, byoyomi=1000), "white", 200, 2.3),
        (Go(btime=0, wtime=60_000, byoyomi=1000), "black", 200, 0.8),
        (Go(btime=60_000, wtime=60_000, movetime=500), "black", 200, 0.3),
        (Go(btime=100), "black", 200, 0.01),  # whatever happens, it thinks
        (Go(wtime=60_000), "black", 0, 0.01),
        (Go(btime=60_000, infinite=True), "black", 0, None),
        (Go(nodes=5), "black", 0, None),
    ],
)
def test_how_long_it_thinks(go, turn, overhead, seconds):
    assert go.limit(turn, overhead=overhead).seconds == pytest.approx(seconds)


def test_go_is_read_word_by_word():
    line = "ponder btime 1 wtime 2 binc 3 winc 4 byoyomi 5 movetime 6 nodes 7"
    go = read_go(line.split())
    assert go == Go(btime=1, wtime=2, binc=3, winc=4, byoyomi=5, movetime=6, nodes=7, ponder=True)


@pytest.mark.parametrize("rubbish", ["--5", "-", "5-", "1e9", "", "soon", "²"])
def test_a_time_that_is_no_number_is_passed_over(rubbish):
    assert read_go(["btime", rubbish, "nodes", "5"]) == Go(nodes=5)


@pytest.mark.parametrize(
    "line", ["btime 0", "movetime 9", "byoyomi 9", "infinite", "ponder", "mate"]
)
def test_nodes_alone_are_the_limit_when_nothing_speaks_of_time(line):
    assert read_go(["nodes", "9"]).by_nodes_alone
    assert not read_go(["nodes", "9", *line.split()]).by_nodes_alone
