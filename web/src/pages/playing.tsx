/** A game between a person and an agent. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, get, type Hint, path, type PlayedGame, post, type Side } from "../api";
import { Board } from "../board/board";
import { otherSide } from "../board/sfen";
import { ValueGraph } from "../charts/value_graph";
import { chance, count, howItPlays, percent } from "../format";
import { go, link } from "../router";
import { clack } from "../sound";
import { ClockFace } from "../ui/clock";
import { MoveList } from "../ui/moves";
import { Button, Dialog, sentence, Waiting } from "../ui/parts";
import { CopyLink } from "../ui/share";
import { arrowsOf, TopMoves } from "./live";

export function PlayingPage({ id }: { id: string }) {
  const [game, setGame] = useState<PlayedGame | null>(null);
  const [problem, setProblem] = useState<ApiError | null>(null);
  const address = path("play", id);
  useEffect(() => {
    get<PlayedGame>(address).then(setGame, setProblem);
  }, [address]);
  if (!game) {
    return (
      <>
        <h1>Play</h1>
        <Waiting error={problem} what="this game" />
        {problem && (
          <p class="centered">
            <a href={link(["play"])}>Start a new game</a>
          </p>
        )}
      </>
    );
  }
  return <Playing game={game} onChange={setGame} />;
}

/** Sends requests, and shows what went wrong; of answers that overlap, the newest request's counts. */
function useGame(game: PlayedGame, onChange: (game: PlayedGame) => void) {
  const [doing, setDoing] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const newest = useRef(0);
  const send = async <T,>(what: string, body?: object): Promise<T | null> => {
    const own = ++newest.current;
    setDoing(what);
    setProblem(null);
    try {
      const answer = await post<T>(`${path("play", game.id)}/${what}`, body);
      return own === newest.current ? answer : null;
    } catch (error) {
      if (own === newest.current) setProblem(error instanceof ApiError ? error.message : String(error));
      return null;
    } finally {
      if (own === newest.current) setDoing(null);
    }
  };
  const change = async (what: string, body?: object) => {
    const next = await send<PlayedGame>(what, body);
    if (next) onChange(next);
  };
  const refresh = () => get<PlayedGame>(path("play", game.id)).then(onChange, () => {});
  return { doing, problem, send, change, refresh };
}

function Playing({ game, onChange }: { game: PlayedGame; onChange: (game: PlayedGame) => void }) {
  const { doing, problem, send, change, refresh } = useGame(game, onChange);
  const busy = doing !== null;
  const waits = busy && doing !== "reply"; // while it thinks, a person may still undo and resign
  const [bottom, setBottom] = useState<Side>(game.side);
  const [hint, setHint] = useState<Hint | null>(null);
  const [shown, setShown] = useState<number | null>(null); // an earlier ply that is looked at
  const [asking, setAsking] = useState(false);
  const newest = game.positions.length - 1;
  const ply = shown ?? newest;

  useEffect(() => {
    setHint(null);
    setShown(null);
  }, [game.position.sfen, game.result]);
  const heard = useRef(game.moves.length);
  useEffect(() => {
    if (game.moves.length > heard.current) clack();
    heard.current = game.moves.length;
  }, [game.moves.length]);
  // The agent thinks when it is its turn, once for each position.
  const replied = useRef("");
  useEffect(() => {
    const key = `${game.moves.length} ${game.position.sfen}`;
    if (game.your_turn || game.result) replied.current = ""; // after an undo the same position may come again
    if (game.your_turn || game.result || busy || replied.current === key) return;
    replied.current = key;
    change("reply");
  }, [game, busy]);

  const arrows = useMemo(() => hint && arrowsOf(hint.top.slice(0, 3)), [hint]);
  const yours = game.your_turn && !game.result && !busy && ply === newest;
  const move = (usi: string) => change("move", { move: usi });
  const record = (format: string) => `api/${path("play", game.id, "record")}?format=${format}`;
  const above = otherSide(bottom);
  const known = game.values.slice(0, ply + 1).filter((value) => value !== null).at(-1); // a new position is not judged yet
  return (
    <div class={`game-layout playing${game.result ? " over" : ""}`}>
      <div class="board-column">
        <PlayerLine game={game} side={above} onExpire={refresh} thinking={busy && !game.your_turn} />
        <Board
          position={game.positions[ply] ?? game.position}
          bottom={bottom}
          legal={yours ? game.legal : undefined}
          onMove={move}
          arrows={yours && arrows ? arrows : undefined}
          label={`Game against ${game.label}`}
        />
        <PlayerLine game={game} side={bottom} onExpire={refresh} thinking={busy && !game.your_turn} />
      </div>
      <aside class="card side">
        <h1 class="unseen">Game against {game.label}</h1>
        <Status game={game} busy={busy} problem={problem} onRetry={() => change("reply")} />
        {game.result && <AfterGame game={game} />}
        <div class="controls" role="group" aria-label="Game">
          <Button
            icon="bulb"
            disabled={!yours}
            onClick={async () => setHint(hint ? null : await send<Hint>("hint"))}
            pressed={hint !== null}
          >
            Hint
          </Button>
          <Button icon="undo" disabled={waits || game.moves.length < (game.your_turn ? 2 : 1)} onClick={() => change("undo")}>
            Undo
          </Button>
          <Button icon="flag" disabled={waits || game.result !== null} onClick={() => setAsking(true)}>
            Resign
          </Button>
        </div>
        {hint && (
          <div class="hints">
            <TopMoves top={hint.top} onChoose={move} />
          </div>
        )}
        {game.values.some((value) => value !== null) && (
          <div class="value">
            <p>
              Your chance to win <b>{percent(chance(known, game.side))}</b>
            </p>
            <ValueGraph values={game.values} ply={ply} onChoose={setShown} />
          </div>
        )}
        <MoveList moves={game.moves} ply={ply} onChoose={(next) => setShown(next === newest ? null : next)} />
        {ply !== newest && <Button onClick={() => setShown(null)}>Back to the game</Button>}
        <div class="tools">
          <Button kind="quiet" icon="flip" onClick={() => setBottom(otherSide)}>
            Flip
          </Button>
          <CopyLink address={link(["position"], { sfen: (game.positions[ply] ?? game.position).sfen })} />
          <a class="button quiet" href={record("kif")} download>
            KIF
          </a>
          <a class="button quiet" href={record("csa")} download>
            CSA
          </a>
          {!game.result && (
            <a class="button quiet" href={link(["play"])}>
              New game
            </a>
          )}
        </div>
      </aside>
      {asking && (
        <Dialog title="Resign this game?" onClose={() => setAsking(false)}>
          <div class="row">
            <Button
              kind="danger"
              onClick={() => {
                setAsking(false);
                change("resign");
              }}
            >
              Resign
            </Button>
            <Button onClick={() => setAsking(false)}>Play on</Button>
          </div>
        </Dialog>
      )}
    </div>
  );
}

interface StatusProps {
  game: PlayedGame;
  busy: boolean;
  problem: string | null;
  onRetry: () => void;
}

function Status({ game, busy, problem, onRetry }: StatusProps) {
  if (problem) {
    return (
      <div class="note error" role="alert">
        <p>{sentence(problem)}</p>
        {!game.your_turn && !game.result && <Button onClick={onRetry}>Try again</Button>}
      </div>
    );
  }
  let text = game.your_turn ? "Your move" : `${game.label} is thinking…`;
  if (game.your_turn && game.position.check) text = "You are in check";
  if (game.result) text = game.result.text;
  return (
    <p class="status" role="status" data-busy={busy}>
      {text}
    </p>
  );
}

interface LineProps {
  game: PlayedGame;
  side: Side;
  thinking: boolean;
  onExpire: () => void;
}

function PlayerLine({ game, side, thinking, onExpire }: LineProps) {
  const you = side === game.side;
  const turn = game.position.turn === side && !game.result;
  return (
    <div class={`player-line${turn ? " turn" : ""}`}>
      <span class="whose">{side === "black" ? "☗" : "☖"}</span>
      <span class="name">{you ? "You" : game.label}</span>
      {!you && <span class="muted">{game.elo ? `Elo ${count(game.elo.rating)}` : howItPlays(game.nodes || null)}</span>}
      {!you && thinking && turn && <span class="thinking" aria-hidden="true" />}
      {game.clock && <ClockFace clock={game.clock} side={side} onExpire={onExpire} />}
    </div>
  );
}

/** What to do next, beside the final position. */
function AfterGame({ game }: { game: PlayedGame }) {
  const [problem, setProblem] = useState<string | null>(null);
  const rematch = () =>
    post<PlayedGame>(`${path("play", game.id)}/rematch`).then(
      ({ id }) => go(link(["play", id])),
      (error) => setProblem(String(error.message)),
    );
  const row = useRef<HTMLDivElement>(null);
  useEffect(() => row.current?.scrollIntoView({ block: "nearest" }), []); // on a phone it is below the board
  return (
    <div class="row after-game" ref={row}>
      {game.kept !== null && (
        <a class="button main" href={link(["review", game.kept])}>
          Review
        </a>
      )}
      <Button onClick={rematch}>Rematch</Button>
      <a class="button plain" href={link(["play"])}>
        New game
      </a>
      {problem && (
        <p class="note error" role="alert">
          {sentence(problem)}
        </p>
      )}
    </div>
  );
}
