"""The addresses of kept games and their reviews."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from keisei.shogi.records import record_bytes
from keisei.web.games import RunGames
from keisei.web.imports import read_text
from keisei.web.kept import KeptGames, KeptRecord
from keisei.web.kept_schema import Kept, KeptGame, KeptKind, KeptList, ReviewUpdate
from keisei.web.positions import replay
from keisei.web.responses import EventStream, Format, GameNumber, Number, events, file_response
from keisei.web.review import Reviews
from keisei.web.schema import NoBody
from keisei.web.threads import Threads

# A record as it is in its file: the server finds out what it is, and how it is encoded.
_RECORD = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


def kept_routes(kept: KeptGames, reviews: Reviews, games: RunGames, reading: Threads) -> APIRouter:
    """All of them."""
    routes = APIRouter(prefix="/api")

    @routes.post("/runs/{run}/games/{number}/keep")
    async def keep(run: str, number: GameNumber, _: NoBody | None = None) -> Kept:
        return await reading.run(_keep_recorded, kept, games, run, number)

    @routes.get("/kept")
    async def find(
        search: Annotated[str, Query(max_length=100)] = "",
        kind: KeptKind | None = None,
        offset: Number = 0,
        limit: Annotated[int, Query(ge=0, le=500)] = 50,
    ) -> KeptList:
        return await reading.run(kept.find, search, kind, offset, limit)

    @routes.post("/kept", openapi_extra={"requestBody": {"content": _RECORD}})
    async def bring(request: Request) -> Kept:
        return await reading.run(_import, kept, await request.body())

    @routes.delete("/kept/{number}")
    async def delete(number: GameNumber) -> NoBody:
        await reading.run(kept.delete, number)
        return NoBody()

    @routes.get("/kept/{number}")
    async def show(number: GameNumber) -> KeptGame:
        return await reading.run(_show, kept, number)

    @routes.get("/kept/{number}/record", response_class=Response)
    async def record(number: GameNumber, form: Format = "kif") -> Response:
        return file_response(*await reading.run(_record, kept, number, form), form)

    @routes.get(
        "/kept/{number}/review/stream", response_class=EventStream, responses=events(ReviewUpdate)
    )
    async def review(number: GameNumber) -> Response:
        reviews.refuse_too_many()
        await reading.run(kept.row, number)  # what is not there is an error now, not in the stream
        return EventStream(reviews.stream(number))

    return routes


def _import(kept: KeptGames, data: bytes) -> Kept:
    return Kept(id=kept.keep(KeptRecord(read_text(data), "imported")))


def _keep_recorded(kept: KeptGames, games: RunGames, run: str, number: int) -> Kept:
    source = f"run/{run}/{number}"
    return Kept(id=kept.keep(KeptRecord(games.open(run, number), "recorded", source=source)))


def _show(kept: KeptGames, number: int) -> KeptGame:
    row, record = kept.row(number), kept.open(number).record
    positions, moves = replay(record.start_sfen, record.moves)
    return KeptGame(**row.model_dump(), positions=positions, moves=moves)


def _record(kept: KeptGames, number: int, suffix: str) -> tuple[str, bytes]:
    file = f"keisei-{number}.{suffix}"
    return file, record_bytes(kept.open(number).record, file)
