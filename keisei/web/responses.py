"""What the addresses have in common: streams, files, and the numbers and names in them."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import Path, Query, Response
from starlette.responses import StreamingResponse

_MEDIA = {"kif": "application/x-kif", "csa": "application/x-csa"}

Format = Annotated[Literal["kif", "csa"], Query(alias="format")]
Number = Annotated[int, Query(ge=0, le=2**31)]
GameNumber = Annotated[int, Path(ge=0, le=2**53)]


class EventStream(StreamingResponse):
    """Server-sent events."""

    media_type = "text/event-stream"


def events(model: Any) -> dict[int | str, dict[str, Any]]:
    """The type of a stream's events, for the OpenAPI schema."""
    return {200: {"model": model, "description": "Server-sent events"}}


def file_response(name: str, content: bytes, form: str) -> Response:
    """A file to download."""
    disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    return Response(content, headers={"Content-Disposition": disposition}, media_type=_MEDIA[form])
