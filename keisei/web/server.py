"""Running the server: `keisei serve`."""

from __future__ import annotations

import errno
import os
import socket
import threading
import webbrowser
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI

from keisei.errors import KeiseiError
from keisei.web.app import Server, create_app
from keisei.web.connections import Connection
from keisei.web.security import Access

MORE_PORTS = 50  # to try if the wanted one is taken


class _Uvicorn(uvicorn.Server):
    """Stops at once when told to, even while streams are open and agents are thinking."""

    def __init__(self, config: uvicorn.Config, server: Server) -> None:
        super().__init__(config)
        self._server = server

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._server.close()
        super().handle_exit(sig, frame)


def serve(
    runs_dir: Path | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    open_browser: bool = False,
    more_hosts: tuple[str, ...] = (),
) -> None:
    """Serve the page until Ctrl-C, on the port or the next free one; port 0 takes any.

    `runs_dir` is "runs" by default, which may not exist yet.
    """
    if runs_dir and not runs_dir.is_dir():
        raise KeiseiError(f"--runs {runs_dir} is not a folder: name the folder with your runs")
    runs_dir = runs_dir or Path("runs")
    access = Access.of(host, more_hosts)
    app = create_app(runs_dir, access)
    server: Server = app.state.server
    with _listen(host, port) as listening:
        got = listening.getsockname()[1]
        address = _address(host, got, access.token, more_hosts)
        if port not in (0, got):
            print(f"Port {port} is taken: using {got}.", flush=True)
        if server.runs.names():
            print(f"Keisei shows the runs in {runs_dir.resolve()} at", flush=True)
        else:  # without a run there is still the board
            print(f"No runs in {runs_dir.resolve()} yet: play Shogi against Keisei at", flush=True)
            address += "#/play"
        print(f"\n  {address}\n", flush=True)
        if access.token:
            print("Anyone with this address can watch and play on this machine.", flush=True)
        if open_browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        try:
            _Uvicorn(uvicorn_config(app), server).run(sockets=[listening])
        finally:
            if server.busy:  # Python would wait for threads that are loading a network or thinking
                os._exit(130)


def uvicorn_config(app: FastAPI, port: int = 0) -> uvicorn.Config:
    """How uvicorn serves the application."""
    return uvicorn.Config(
        app,
        port=port,
        http=Connection,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=1,
    )


def _listen(host: str, port: int, more: int = MORE_PORTS) -> socket.socket:
    """Listen on the port, or on the first free one after it."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        if error.errno == errno.EADDRINUSE and more and port < 65535:
            return _listen(host, port + 1, more - 1)
        reason = error.strerror or error
        raise KeiseiError(
            f"cannot serve at {host}:{port} ({reason}): choose another --host or --port"
        ) from error


def _address(host: str, port: int, token: str | None, more_hosts: tuple[str, ...]) -> str:
    """The address to open in a browser; for a public server, one that others can use."""
    if host in ("0.0.0.0", "::"):
        host = [*more_hosts, socket.gethostname()][0]
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")
