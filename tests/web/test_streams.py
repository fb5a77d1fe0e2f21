"""Live data: a training that goes on beside a server."""

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager

from keisei.runs.metrics import MetricsStore
from keisei.training.callbacks import RecordMetrics
from keisei.web import events
from keisei.web.runs import RunsFolder
from tests.web.conftest import serving, trainer_of


@contextmanager
def listening(client, path):
    """The events of a stream, as (name, data)."""
    with client.stream("GET", path, timeout=30) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield _events(answer.iter_lines())


def _events(lines):
    name = None
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def next_of(stream, wanted):
    return next(data for name, data in stream if name == wanted)


def test_a_stream_begins_with_what_is_known(client):
    with listening(client, "/api/runs/stream") as stream:
        assert next_of(stream, "runs") == client.get("/api/runs").json()
    with listening(client, "/api/runs/first/stream") as stream:
        update = next_of(stream, "update")
        detail = client.get("/api/runs/first").json()
        for part in ("latest", "latest_steps", "workers"):
            assert update[part] == detail[part]
        assert update["row"]["steps"] == 1024
        assert update["events"] == detail["events"][:20]
        assert next_of(stream, "live") == {"games": []}


def test_a_stream_of_a_run_that_is_not_there(client):
    assert client.get("/api/runs/nobody/stream").status_code == 404


def test_news_reach_all_who_listen_and_are_made_once(runs, monkeypatch):
    looks = []
    update = RunsFolder.update
    monkeypatch.setattr(RunsFolder, "update", lambda *args: looks.append(1) or update(*args))
    with serving(runs) as client:

        def listen(barrier):
            with listening(client, "/api/runs/first/stream") as stream:
                next_of(stream, "update")
                barrier.wait(30)
                return next(
                    data
                    for name, data in stream
                    if name == "update" and data["row"]["steps"] > 1024
                )

        barrier = threading.Barrier(9)
        with ThreadPoolExecutor(8) as threads:
            waiting = [threads.submit(listen, barrier) for _ in range(8)]
            barrier.wait(30)
            with MetricsStore(runs / "first" / "metrics.sqlite") as store:
                store.log(2048, {"entropy": 1.5})
            heard = [one.result(30) for one in waiting]
        assert all(one == heard[0] for one in heard)
        assert heard[0]["latest"]["entropy"] == 1.5
        assert len(looks) <= 4  # at the start, at the news; closing the store is news as well


def test_a_run_that_is_removed_ends_its_stream(runs):
    with serving(runs) as client, listening(client, "/api/runs/first/stream") as stream:
        next_of(stream, "update")
        (runs / "first").rename(runs / ".first")
        assert not [data for name, data in stream if name == "update"][10:]


def test_streams_are_bounded(client, monkeypatch):
    monkeypatch.setattr(events, "MAX_STREAMS", 1)
    with listening(client, "/api/runs/stream") as stream:
        next_of(stream, "runs")
        answer = client.get("/api/runs/first/stream")
        assert answer.status_code == 503
        assert "windows" in answer.json()["detail"]


def test_streams_are_bounded_when_they_come_all_at_once(trained_runs, monkeypatch):
    monkeypatch.setattr(events, "MAX_STREAMS", 10)
    request = b"GET /api/runs/%s HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serving(trained_runs) as client, ExitStack() as stack:
        url = client.base_url
        sockets = [socket.create_connection((url.host, url.port), timeout=60) for _ in range(60)]
        for number, one in enumerate(sockets):
            stack.enter_context(closing(one))
            one.sendall(request % (b"stream" if number % 2 else b"first/stream"))
        answers = [one.recv(12) for one in sockets]
        assert answers.count(b"HTTP/1.1 200") == 10
        assert answers.count(b"HTTP/1.1 503") == 50


def test_a_training_is_seen_while_it_goes_on(tmp_path):
    record = RecordMetrics()
    trainer = trainer_of(tmp_path, "now", callbacks=[record])

    def update():
        record.on_update(trainer, trainer.update())

    with serving(tmp_path) as client, trainer.run.lock():
        record.on_start(trainer)
        update()
        with listening(client, "/api/runs/now/stream") as stream:
            news, live = next_of(stream, "update"), next_of(stream, "live")
            assert news["row"]["state"] == "training"
            assert news["row"]["steps"] == 256
            game = live["games"][0]
            shown = trainer.current_game()
            assert game["position"]["sfen"] == shown.sfen()
            assert game["move_number"] == len(shown.moves) == len(game["values"])
            assert game["top"] == []  # there is no checkpoint yet
            trainer.checkpoints.save(256, trainer.state_dict())
            update()
            games = (data["games"] for name, data in stream if name == "live")
            newer = next(some for some in games if some and some[0]["top"])
            best = newer[0]["top"][0]
            assert 0 < best["probability"] <= 1
            assert best["western"]
        record.on_close(trainer)
    assert RunsFolder(tmp_path).row("now").state == "stopped"
