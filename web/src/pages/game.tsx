/** A game that was played, move by move. */
import { useEffect, useState } from "preact/hooks";
import { type GameDetail, type Kept, path, post, type Side } from "../api";
import { Board } from "../board/board";
import { otherSide } from "../board/sfen";
import { ValueGraph } from "../charts/value_graph";
import { chances, count, short } from "../format";
import { useFetch } from "../loading";
import { go, link, replace } from "../router";
import { MoveList } from "../ui/moves";
import { Button, sentence, Waiting } from "../ui/parts";
import { GameTools, ReplayControls, useReplayKeys } from "../ui/replay";
import { resultOf } from "./games";

interface Props {
  run: string;
  id: string;
  query: URLSearchParams;
}

export function GamePage({ run, id, query }: Props) {
  const { data, error, reload } = useFetch<GameDetail>(path("runs", run, "games", id));
  const crumb = (
    <p class="crumb">
      <a href={link(["games"], { run })}>Games of {run}</a>
    </p>
  );
  if (!data) {
    return (
      <>
        {crumb}
        <h1>Game {id}</h1>
        <Waiting error={error} what={`game ${id}`} onRetry={reload} />
      </>
    );
  }
  return (
    <>
      {crumb}
      <Replay run={run} game={data} start={Number(query.get("ply") ?? 0) || 0} />
    </>
  );
}

function Replay({ run, game, start }: { run: string; game: GameDetail; start: number }) {
  const last = game.positions.length - 1;
  const [ply, setPly] = useState(Math.max(0, Math.min(last, start)));
  const [bottom, setBottom] = useState<Side>("black");
  const [problem, setProblem] = useState<string | null>(null);
  const show = (next: number) => setPly(Math.max(0, Math.min(last, next)));
  const flip = () => setBottom(otherSide);
  useReplayKeys({ ply, last, onShow: show }, flip);
  useEffect(() => replace(link(["games", run, game.id], ply ? { ply } : {})), [ply]);
  const review = () =>
    post<Kept>(`${path("runs", run, "games", game.id)}/keep`).then(
      ({ id }) => go(link(["review", id])),
      (error) => setProblem(String(error.message)),
    );
  const position = game.positions[ply]!;
  const record = (format: string) => `api/${path("runs", run, "games", game.id, "record")}?format=${format}`;
  return (
    <div class="game-layout">
      <div class="board-column">
        <Board position={position} bottom={bottom} label={`Game ${game.id}, move ${ply} of ${last}`} />
        <ReplayControls ply={ply} last={last} onShow={show} />
      </div>
      <aside class="card side">
        <h1 class="players">
          <span class={game.winner === "black" ? "won" : undefined}>☗ {game.black}</span>
          <span class={game.winner === "white" ? "won" : undefined}>☖ {game.white}</span>
        </h1>
        <p class="muted">
          {resultOf(game)} after {count(game.length)} moves · {game.kind}, step {short(game.step)}
        </p>
        <Button kind="main" icon="bulb" onClick={review}>
          Review this game
        </Button>
        {problem && (
          <p class="note error" role="alert">
            {sentence(problem)}
          </p>
        )}
        <div class="value">
          <p>
            Chance to win <b>{chances(game.values[ply])}</b>
          </p>
          <ValueGraph values={game.values} ply={ply} onChoose={show} />
        </div>
        <MoveList moves={game.moves} ply={ply} onChoose={show} />
        <GameTools sfen={position.sfen} record={record} onFlip={flip} />
      </aside>
    </div>
  );
}
