"""The application: every address of the server, each a few lines that call other modules."""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.staticfiles import StaticFiles

from keisei import __version__
from keisei.errors import KeiseiError
from keisei.web import schema
from keisei.web.analysis import Analyses
from keisei.web.curves import series
from keisei.web.events import Hub
from keisei.web.games import RunGames
from keisei.web.kept import KeptGames
from keisei.web.kept_routes import analysis_routes, kept_routes, review_routes
from keisei.web.live import RunsWatch, RunWatch
from keisei.web.networks import Networks
from keisei.web.opponents import list_players
from keisei.web.play import Table
from keisei.web.positions import handicaps, look_at, start_sfen
from keisei.web.responses import EventStream, Format, GameNumber, Number, events, file_response
from keisei.web.review import Reviews
from keisei.web.runs import RunsFolder
from keisei.web.security import Access, Guard
from keisei.web.threads import Threads, WebError
from keisei.web.worlds import Episodes

log = logging.getLogger(__name__)

STATIC = Path(__file__).parent / "static"
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": schema.Problem} for status in (400, 401, 403, 404, 405, 409, 413, 422, 503)
}


class Server:
    """What all addresses share."""

    def __init__(self, runs_dir: Path, access: Access) -> None:
        self.access = access
        self.closing = threading.Event()
        self.runs = RunsFolder(runs_dir)
        self.networks = Networks()
        self.games = RunGames(self.runs, self.networks)
        self.episodes = Episodes(self.runs)
        self.kept = KeptGames(runs_dir)
        self.table = Table(self.runs, self.networks, self.closing.is_set, self.kept)
        self.reviews = Reviews(self.kept, self.networks, self.closing.is_set)
        self.analyses = Analyses(
            self.kept, self.networks, self.reviews.threads, self.closing.is_set
        )
        self.reading = Threads("reading", 16, waiting=400)
        self.thinking = Threads("thinking", 2, waiting=50)
        self.watching = Threads("watching", 2, waiting=100)
        self.hub = Hub()
        self._threads = (self.reading, self.thinking, self.watching, self.reviews.threads)

    @property
    def busy(self) -> bool:
        """Is a thread still working?"""
        return any(threads.busy for threads in self._threads)

    def close(self) -> None:
        """Stop all work in progress."""
        self.closing.set()
        self.hub.close()
        for threads in self._threads:
            threads.close()
        self.kept.close()


def create_app(runs_dir: Path, access: Access | None = None) -> FastAPI:
    """The application for the runs below `runs_dir`."""
    server = Server(runs_dir, access or Access())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # PyTorch takes seconds to import: have it ready by the first game.
        threading.Thread(target=import_module, args=("torch",), daemon=True).start()
        yield
        server.close()

    app = FastAPI(
        title="Keisei",
        version=__version__,
        lifespan=lifespan,
        openapi_url="/api/openapi.json",
        docs_url=None,  # its scripts would come from another server
        redoc_url=None,
        responses=_PROBLEMS,
        # New versions of FastAPI can report requests to others if the environment says so.
        telemetry={
            "tracing": False,
            "metrics": False,
            "logs": False,
            "operation_spans": False,
            "auto_configure": False,
        },
    )
    app.state.server = server
    _answer_errors(app)
    app.include_router(_general_routes(server))
    app.include_router(_run_routes(server))
    app.include_router(_game_routes(server))
    app.include_router(_play_routes(server))
    app.include_router(kept_routes(server.kept, server.games, server.reading, server.reviews))
    app.include_router(review_routes(server.kept, server.reviews, server.reading, server.thinking))
    app.include_router(analysis_routes(server.kept, server.analyses, server.reading))
    app.mount("/", StaticFiles(directory=STATIC, html=True, check_dir=False))
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)  # except streams
    app.add_middleware(Guard, access=server.access)
    return app


def _answer_errors(app: FastAPI) -> None:
    """Turn every error into one sentence."""

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        return _problem(422, f"{where}: {first['msg']}" if where else str(first["msg"]))

    @app.exception_handler(HTTPException)
    async def refused(_: Request, error: HTTPException) -> Response:
        return JSONResponse({"detail": str(error.detail)}, error.status_code, error.headers)

    @app.exception_handler(KeiseiError)
    async def failed(_: Request, error: KeiseiError) -> Response:
        return _problem(error.status if isinstance(error, WebError) else 400, str(error))

    @app.exception_handler(Exception)
    async def broken(_: Request, error: Exception) -> Response:
        return _problem(500, f"the server failed: {error}")


def _problem(status: int, detail: str) -> JSONResponse:
    return JSONResponse({"detail": " ".join(detail.split())}, status)


def _general_routes(server: Server) -> APIRouter:
    routes = APIRouter(prefix="/api")

    @routes.get("/info")
    async def info() -> schema.Info:
        return schema.Info(
            version=__version__,
            handicaps=handicaps(),
            token_required=server.access.token is not None,
        )

    @routes.get("/position")
    async def position(sfen: Annotated[str, Query(max_length=200)]) -> schema.PositionAnswer:
        return await server.reading.run(look_at, start_sfen(sfen))

    return routes


def _run_routes(server: Server) -> APIRouter:
    routes = APIRouter(prefix="/api/runs")
    runs, read = server.runs, server.reading.run

    @routes.get("")
    async def all_runs() -> schema.RunList:
        return schema.RunList(runs=await read(runs.rows))

    @routes.get("/stream", response_class=EventStream, responses=events(schema.RunList))
    async def watch_all() -> Response:
        watch = RunsWatch(runs, server.watching)
        return EventStream(server.hub.open("all runs", lambda: watch.look))

    @routes.get("/{run}")
    async def one_run(run: str) -> schema.RunDetail:
        return await read(runs.detail, run)

    @routes.get("/{run}/series")
    async def curves(
        run: str,
        name: Annotated[list[str], Query(max_length=100)],
        points: Annotated[int, Query(ge=2, le=5000)] = 400,
        axis: Literal["step", "time"] = "step",
    ) -> schema.SeriesAnswer:
        return await read(series, runs, run, name, points, axis == "time")

    @routes.get(
        "/{run}/stream",
        response_class=EventStream,
        responses=events(schema.RunUpdate | schema.LiveUpdate),
    )
    async def watch_one(run: str) -> Response:
        await read(runs.open, run)
        watch = RunWatch(runs, server.networks, server.watching, run)
        return EventStream(server.hub.open(("run", run), lambda: watch.look))

    return routes


def _game_routes(server: Server) -> APIRouter:
    routes = APIRouter(prefix="/api/runs")
    games, read = server.games, server.reading.run

    @routes.get("/{run}/games")
    async def list_games(
        run: str,
        kind: Literal["self-play", "evaluation"] | None = None,
        winner: Literal["black", "white", "none"] | None = None,
        reason: Annotated[str | None, Query(max_length=100)] = None,
        record: bool = False,
        offset: Number = 0,
        limit: Annotated[int, Query(ge=0, le=500)] = 50,
    ) -> schema.GameList:
        return await read(games.find, run, kind, winner, reason, record, offset, limit)

    @routes.get("/{run}/games/{number}")
    async def one_game(run: str, number: GameNumber) -> schema.GameDetail:
        return await server.thinking.run(games.detail, run, number)

    @routes.get("/{run}/games/{number}/record", response_class=Response)
    async def game_record(run: str, number: GameNumber, form: Format = "kif") -> Response:
        return file_response(*await read(games.record, run, number, form), form)

    @routes.get("/{run}/episode")
    async def episode(run: str, seed: Number = 0) -> schema.Episode:
        return await server.thinking.run(server.episodes.play, run, seed)

    return routes


def _play_routes(server: Server) -> APIRouter:
    routes = APIRouter(prefix="/api")
    table, read, think = server.table, server.reading.run, server.thinking.run

    @routes.get("/players")
    async def players() -> schema.PlayerList:
        return await read(list_players, server.runs)

    @routes.post("/play")
    async def begin(settings: schema.NewGame) -> schema.PlayedGame:
        return await think(table.begin, settings)

    @routes.get("/play/{game}")
    async def show(game: str) -> schema.PlayedGame:
        return await read(table.show, game)

    @routes.post("/play/{game}/move")
    async def move(game: str, request: schema.MoveRequest) -> schema.PlayedGame:
        return await read(table.move, game, request.move)

    @routes.post("/play/{game}/reply")
    async def reply(game: str, _: schema.NoBody | None = None) -> schema.PlayedGame:
        return await think(table.reply, game)

    @routes.post("/play/{game}/undo")
    async def undo(game: str, _: schema.NoBody | None = None) -> schema.PlayedGame:
        return await read(table.undo, game)

    @routes.post("/play/{game}/resign")
    async def resign(game: str, _: schema.NoBody | None = None) -> schema.PlayedGame:
        return await read(table.resign, game)

    @routes.post("/play/{game}/rematch")
    async def rematch(game: str, _: schema.NoBody | None = None) -> schema.PlayedGame:
        return await think(table.rematch, game)

    @routes.post("/play/{game}/hint")
    async def hint(game: str, _: schema.NoBody | None = None) -> schema.Hint:
        return await think(table.hint, game)

    @routes.get("/play/{game}/record", response_class=Response)
    async def record(game: str, form: Format = "kif") -> Response:
        return file_response(*await read(table.record, game, form), form)

    return routes
