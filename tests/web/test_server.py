"""`keisei serve` as a user starts and ends it: a process of its own."""

import contextlib
import re
import signal
import socket

import httpx
import pytest
from typer.testing import CliRunner

from keisei.cli import app
from keisei.web import connections
from keisei.web.server import MORE_PORTS
from tests.processes import Process
from tests.web.conftest import serving


@pytest.fixture
def start(trained_runs):
    """Starts `keisei serve`; gives the process and the address that it printed."""
    started = []

    def start_server(*options):
        process = Process(["serve", "--runs", trained_runs, "--no-open", *options])
        started.append(process)
        process.said = []
        for line in process.stdout:
            process.said.append(line)
            address = re.search(r"http://\S+", line)
            if address:
                return process, address.group()
        raise AssertionError(process.stderr.read())

    yield start_server
    for process in started:
        process.kill()
        process.communicate(timeout=30)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_when_told_also_with_open_streams(start, how):
    process, address = start("--port", "0")
    with (
        httpx.Client(base_url=address, timeout=60) as client,
        client.stream("GET", "/api/runs/first/stream") as stream,
    ):
        assert next(stream.iter_lines()) == "event: update"
        process.send_signal(how)
        process.wait(20)
    assert "Traceback" not in process.stderr.read()


def test_loopback_needs_no_token_and_says_who_it_is_to_nobody(start):
    _, address = start("--port", "0")
    answer = httpx.get(f"{address}api/info", timeout=60)
    assert answer.json()["token_required"] is False
    assert "server" not in answer.headers


def test_beyond_loopback_the_address_has_a_token(start):
    _, address = start("--port", "0", "--host", "0.0.0.0")
    url = httpx.URL(address).copy_with(host="127.0.0.1")
    assert len(url.params["token"]) >= 32
    bare = url.copy_with(query=None)
    assert httpx.get(f"{bare}api/runs", timeout=60).status_code == 401
    with httpx.Client(timeout=60) as client:
        assert client.get(url.copy_with(path="/api/info")).status_code == 200
        assert client.get(f"{bare}api/runs").status_code == 200


def test_behind_another_name_the_address_has_that_name(start):
    _, address = start("--port", "0", "--host", "0.0.0.0", "--allow-host", "localhost")
    assert httpx.get(address, timeout=60).status_code == 200
    assert httpx.URL(address).host == "localhost"


def test_a_port_that_is_taken_gives_the_next_free_one_and_says_so(start):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process, address = start("--port", str(port))
        got = httpx.URL(address).port
        assert port < got <= port + MORE_PORTS
        assert httpx.get(f"{address}api/info", timeout=60).status_code == 200
    assert process.said[0] == f"Port {port} is taken: using {got}.\n"


def test_a_port_beyond_the_last_one_is_not_tried():
    with contextlib.ExitStack() as sockets:
        for port in (65534, 65535):  # if somebody else has one of them, that will do
            with contextlib.suppress(OSError):
                sockets.enter_context(socket.create_server(("127.0.0.1", port)))
        done = CliRunner().invoke(app, ["serve", "--no-open", "--port", "65534"])
    assert done.exit_code == 2
    assert done.stderr.startswith("keisei: cannot serve at 127.0.0.1:65535")


def test_who_has_no_runs_is_shown_the_board_and_who_has_some_the_runs(start, tmp_path):
    _, address = start("--port", "0", "--runs", str(tmp_path))
    assert address.endswith("/#/play")
    _, address = start("--port", "0")
    assert address.endswith("/")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--runs", "nowhere"], "nowhere is not a folder"),
        (["--runs", "file"], "file is not a folder"),
        (["--host", "192.0.2.1"], "choose another --host"),  # none was named: that one is wrong
    ],
)
def test_a_folder_of_runs_that_was_named_must_be_there(tmp_path, monkeypatch, options, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("no runs")
    done = CliRunner().invoke(app, ["serve", "--no-open", *options])
    assert done.exit_code == 2
    assert says in done.stderr


@pytest.mark.parametrize("beginning", [b"", b"GET / HTTP/1.1\r\nHost: local"])
def test_many_connections_that_only_wait_keep_nobody_out(start, beginning):
    _, address = start("--port", "0")
    url = httpx.URL(address)
    with contextlib.ExitStack() as waiting:
        for _ in range(600):
            one = socket.create_connection((url.host, url.port), timeout=30)
            waiting.enter_context(contextlib.closing(one))
            one.sendall(beginning)
        for _ in range(3):
            assert httpx.get(f"{address}api/info", timeout=60).status_code == 200


def test_half_a_header_is_not_waited_for(trained_runs, monkeypatch):
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.2)
    with serving(trained_runs) as client:
        assert client.get("/api/info").status_code == 200
        url = client.base_url
        for whole in (b"", b"GET /api/info HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            with socket.create_connection((url.host, url.port), timeout=30) as one:
                one.sendall(whole + b"GET / HTTP/1.1\r\nHost: local")
                while one.recv(4096):  # to the end that the server makes
                    pass
