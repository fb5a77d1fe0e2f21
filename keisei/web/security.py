"""Access control: middleware in front of everything.

- The Host header must name this server. A page on the internet that makes its own name point to
  127.0.0.1 (DNS rebinding) still sends its own name.
- Requests that change something must come from our own page: Origin must be this server.
- Beyond loopback, a token is needed: first in the address, then in a cookie that no script can
  read and no other site can send.
- Request bodies are limited in size and time.
- The page can load from and connect to this server only, and cannot be framed.
"""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import socket
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote_plus

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 64 * 1024
BODY_SECONDS = 20.0
COOKIE = "keisei_token"
MAX_RECORD = 256 * 1024  # a game of 500 moves with times and comments has 60,000
RECORDS = "/api/kept"  # where records are sent to
_TOO_SLOW = (408, "the request did not arrive in time")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
}


def is_loopback(host: str) -> bool:
    """Is a server bound to `host` reachable from this machine only?"""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Access:
    """The host names that the server answers to, and the token that it requires, if any."""

    hosts: frozenset[str] = frozenset(_LOOPBACK)
    any_address: bool = False  # accept any IP address: rebinding needs a name
    token: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, host: str, more_hosts: tuple[str, ...] = ()) -> Access:
        """Access to a server bound to `host`; beyond loopback, with a new token."""
        hosts = {*_LOOPBACK, host.lower(), *(name.lower() for name in more_hosts)}
        if is_loopback(host):
            return cls(frozenset(hosts))
        name = socket.gethostname().lower()
        hosts |= {name, f"{name}.local", socket.getfqdn().lower()}
        return cls(frozenset(hosts), any_address=True, token=secrets.token_urlsafe(24))

    def knows_host(self, header: str) -> bool:
        """Does a Host header name this server? (The port may be that of a tunnel.)"""
        name = _host_name(header)
        if name is None:
            return False
        if name in self.hosts:
            return True
        return self.any_address and _is_address(name)

    def is_token(self, given: str) -> bool:
        """Is it the right token? The comparison takes the same time for every wrong one."""
        expected = self.token or ""
        return secrets.compare_digest(given.encode(), expected.encode())


class Guard:
    """The middleware; pure ASGI, so that streams are not buffered."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # there are no web sockets here
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        brings_token = self._brings_token(scope)
        if self._access.token:
            scope["query_string"] = _without_token(scope["query_string"])  # what logs show
        refusal = self._refusal(scope, headers, brings_token)
        set_cookie = refusal is None and brings_token
        answer = _Answer(scope, send, self._access.token if set_cookie else None)
        if refusal:
            await _problem(*refusal)(scope, receive, answer.send)
            return
        await self._app(scope, _Body(receive, _limit(scope)).receive, answer.send)

    def _refusal(
        self, scope: Scope, headers: Headers, brings_token: bool
    ) -> tuple[int, str] | None:
        """Why the request is refused, as a status and a sentence; None if it may pass."""
        host = headers.get("host", "")
        if not self._access.knows_host(host):
            return 400, f"this server does not answer to the name {host[:100]!r}"
        if not _is_from_here(scope, headers, host):
            return 403, "requests from other sites are refused"
        length = headers.get("content-length", "0")
        limit = _limit(scope)
        if not length.isascii() or not length.isdigit() or int(length[:20]) > limit:
            return _too_large(limit)
        if self._access.token and not (self._has_token(headers) or brings_token):
            return 401, "a token is required: open the address that `keisei serve` printed"
        return None

    def _has_token(self, headers: Headers) -> bool:
        # By hand: one cookie of another program that is not as it should be (JSON, a space) makes
        # SimpleCookie forget all others.
        cookies = [one.strip().partition("=") for one in headers.get("cookie", "").split(";")]
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        given = [value for name, _, value in cookies if name == COOKIE]
        given += [bearer.strip()] if scheme.lower() == "bearer" else []
        return any(self._access.is_token(one) for one in given)

    def _brings_token(self, scope: Scope) -> bool:
        """Is the token in the address, as on the first visit?"""
        if not self._access.token:
            return False
        query = scope["query_string"].decode("latin-1")
        return any(self._access.is_token(one) for one in parse_qs(query).get("token", []))


def _without_token(query: bytes) -> bytes:
    """The query without what could be a token.

    >>> _without_token(b"a=1&token=x&b=2&%74oken=y")
    b'a=1&b=2'
    """
    parts = [
        (part, unquote_plus(part.partition(b"=")[0].decode("latin-1")))
        for part in query.split(b"&")
    ]
    return b"&".join(part for part, name in parts if name != "token")


def _limit(scope: Scope) -> int:
    """How many bytes the body of a request may have."""
    return MAX_RECORD if scope["path"] == RECORDS else MAX_BODY


def _too_large(limit: int) -> tuple[int, str]:
    return 413, f"a request may have at most {limit:,} bytes here"


class _Body:
    """Counts the bytes of a body whose length was missing or wrong, and limits the wait for it."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive, self._size, self._limit = receive, 0, limit
        self._complete = False

    async def receive(self) -> Message:
        # When the body is there, the next message is that the client has gone.
        try:
            message = await asyncio.wait_for(
                self._receive(), None if self._complete else BODY_SECONDS
            )
        except asyncio.TimeoutError:
            raise HTTPException(*_TOO_SLOW) from None
        self._complete = not message.get("more_body", False)
        self._size += len(message.get("body", b""))
        if self._size > self._limit:
            raise HTTPException(*_too_large(self._limit))
        return message


class _Answer:
    """Adds the headers that every response has."""

    def __init__(self, scope: Scope, send: Send, token: str | None) -> None:
        self._send, self._token = send, token
        self._is_api = scope["path"].startswith("/api")

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            headers["Cache-Control"] = "no-store" if self._is_api else "no-cache"
            if self._token:
                cookie = f"{COOKIE}={self._token}; HttpOnly; SameSite=Strict; Path=/"
                headers.append("Set-Cookie", cookie)
        await self._send(message)


def _is_from_here(scope: Scope, headers: Headers, host: str) -> bool:
    site = headers.get("sec-fetch-site", "none")
    if scope["method"] in ("GET", "HEAD"):
        # Any site may link to the page; only the page may ask for the data.
        return site in ("same-origin", "none") or not scope["path"].startswith("/api")
    origin = headers.get("origin")
    if origin is None:
        return site in ("same-origin", "none")
    return origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")


def _host_name(header: str) -> str | None:
    """The name in a Host header, in lower case, without the port."""
    text = header.strip().lower()
    if text.startswith("["):  # [::1]:8000
        name, bracket, port = text[1:].partition("]")
        if not bracket or (port and not port[1:].isdigit()):
            return None
        return name
    name, _, port = text.partition(":")
    return None if not name or (port and not port.isdigit()) else name


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _problem(status: int, detail: str) -> JSONResponse:
    return JSONResponse({"detail": detail}, status)
