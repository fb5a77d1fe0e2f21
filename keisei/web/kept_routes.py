"""The addresses of kept games and their reviews."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from keisei.shogi import ShogiGame
from keisei.shogi.variations import GameTree, Variation
from keisei.web.analysis import Analyses
from keisei.web.games import RunGames
from keisei.web.imports import read_text
from keisei.web.kept import KeptGames, KeptRecord, record_file
from keisei.web.kept_schema import (
    AnalysisUpdate,
    CommentRequest,
    Judgement,
    JudgeRequest,
    Kept,
    KeptGame,
    KeptKind,
    KeptList,
    ReviewUpdate,
    VariationAnswer,
    VariationNode,
    VariationRequest,
)
from keisei.web.positions import position_of, replay
from keisei.web.responses import EventStream, Format, GameNumber, Number, events, file_response
from keisei.web.review import Reviews
from keisei.web.schema import MoveText, NoBody
from keisei.web.threads import Threads

# A record as it is in its file: the server finds out what it is, and how it is encoded.
_RECORD = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


def kept_routes(kept: KeptGames, games: RunGames, reading: Threads, reviews: Reviews) -> APIRouter:
    """Keeping games, and finding them again."""
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
        reviews.get_ready()  # who looks at the list is about to review one of them
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

    return routes


def review_routes(
    kept: KeptGames, reviews: Reviews, reading: Threads, thinking: Threads
) -> APIRouter:
    """Learning from a kept game."""
    routes = APIRouter(prefix="/api")

    @routes.post("/kept/{number}/variation")
    async def add(number: GameNumber, request: VariationRequest) -> VariationAnswer:
        return await reading.run(_add, kept, number, request)

    @routes.delete("/kept/{number}/variation/{node}")
    async def prune(number: GameNumber, node: GameNumber) -> KeptGame:
        return await reading.run(_prune, kept, number, node)

    @routes.post("/kept/{number}/comment")
    async def comment(number: GameNumber, request: CommentRequest) -> KeptGame:
        return await reading.run(_comment, kept, number, request)

    @routes.post("/kept/{number}/judge")
    async def judge(number: GameNumber, request: JudgeRequest) -> Judgement:
        return await thinking.run(reviews.judge_line, number, request.moves)

    @routes.get(
        "/kept/{number}/review/stream", response_class=EventStream, responses=events(ReviewUpdate)
    )
    async def review(number: GameNumber) -> Response:
        reviews.refuse_too_many()
        await reading.run(kept.row, number)  # what is not there is an error now, not in the stream
        return EventStream(reviews.stream(number))

    return routes


def analysis_routes(kept: KeptGames, analyses: Analyses, reading: Threads) -> APIRouter:
    """Looking deeper into one position of a kept game."""
    routes = APIRouter(prefix="/api")

    @routes.get(
        "/kept/{number}/analysis/stream",
        response_class=EventStream,
        responses=events(AnalysisUpdate),
    )
    async def analyse(number: GameNumber, node: Number = 0) -> Response:
        analyses.refuse_too_many()
        kept_game = await reading.run(kept.open, number)
        kept_game.tree.moves_to(node)  # what is not there is an error now, not in the stream
        return EventStream(analyses.stream(number, node))

    return routes


def _import(kept: KeptGames, data: bytes) -> Kept:
    return Kept(id=kept.keep(KeptRecord(read_text(data), "imported")))


def _keep_recorded(kept: KeptGames, games: RunGames, run: str, number: int) -> Kept:
    tree = GameTree(games.open(run, number))
    return Kept(id=kept.keep(KeptRecord(tree, "recorded", source=f"run/{run}/{number}")))


def _show(kept: KeptGames, number: int) -> KeptGame:
    row, tree = kept.row(number), kept.open(number).tree
    positions, moves = replay(tree.record.start_sfen, tree.record.moves)
    return KeptGame(
        **row.model_dump(),
        positions=positions,
        moves=moves,
        variations=[_variation(tree, one) for one in tree.variations],
        comments={str(ply): text for ply, text in tree.record.comments.items()},
    )


def _variation(tree: GameTree, one: Variation) -> VariationNode:
    game = ShogiGame.from_moves(tree.record.start_sfen, tree.moves_to(one.parent), move_limit=None)
    name = MoveText(**game.name(one.move)._asdict())
    game = ShogiGame.from_moves(tree.record.start_sfen, tree.moves_to(one.node), move_limit=None)
    return VariationNode(
        node=one.node,
        parent=one.parent,
        move=name,
        position=position_of(game),
        comment=one.comment,
    )


def _add(kept: KeptGames, number: int, request: VariationRequest) -> VariationAnswer:
    node = 0

    def play(tree: GameTree) -> GameTree:
        nonlocal node
        tree, node = tree.play(request.parent, request.move)
        return tree

    kept.change(number, play)
    return VariationAnswer(game=_show(kept, number), node=node)


def _prune(kept: KeptGames, number: int, node: int) -> KeptGame:
    kept.change(number, lambda tree: tree.prune(node))
    return _show(kept, number)


def _comment(kept: KeptGames, number: int, request: CommentRequest) -> KeptGame:
    kept.change(number, lambda tree: tree.comment(request.node, request.text))
    return _show(kept, number)


def _record(kept: KeptGames, number: int, suffix: str) -> tuple[str, bytes]:
    return record_file(kept.open(number).tree, f"keisei-{number}", suffix)
