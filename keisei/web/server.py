"""Running the server: `keisei serve`."""

from __future__ import annotations

import os
import socket
import threading
import webbrowser
from pathlib import Path
from types import FrameType

import uvicorn

from keisei.errors import KeiseiError
from keisei.web.app import Server, create_app
from keisei.web.security import Access

MAX_CONNECTIONS = 500


class _Uvicorn(uvicorn.Server):
    """Ends at once when it is told to, also while streams are open and agents think."""

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
    """Serve the page until Ctrl-C; port 0 takes any that is free.

    Without a `runs_dir` it is "runs", where there need not be any run yet.
    """
    if runs_dir and not runs_dir.is_dir():
        raise KeiseiError(f"--runs {runs_dir} is no folder: name the one that your runs are in")
    runs_dir = runs_dir or Path("runs")
    access = Access.of(host, more_hosts)
    app = create_app(runs_dir, access)
    with _listen(host, port) as listening:
        address = _address(host, listening.getsockname()[1], access.token)
        print(f"Keisei shows the runs in {runs_dir.resolve()} at\n\n  {address}\n", flush=True)
        if access.token:
            print("Whoever has this address can watch, and play on this machine.", flush=True)
        if open_browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            ws="none",
            limit_concurrency=MAX_CONNECTIONS,
            timeout_graceful_shutdown=1,
        )
        server: Server = app.state.server
        try:
            _Uvicorn(config, server).run(sockets=[listening])
        finally:
            if server.busy:  # Python would wait for threads that load a network or think
                os._exit(130)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise KeiseiError(
            f"cannot serve at {host}:{port} ({error.strerror or error}): choose another --port"
        ) from error


def _address(host: str, port: int, token: str | None) -> str:
    """What to open in a browser: a name that others can use, if they may."""
    name = socket.gethostname() if host in ("0.0.0.0", "::") else host
    name = f"[{name}]" if ":" in name else name
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")
