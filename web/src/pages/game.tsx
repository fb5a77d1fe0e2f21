/** A game that was played, move by move. */
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { type GameDetail, path, type Side } from "../api";
import { Board } from "../board/board";
import { otherSide } from "../board/sfen";
import { ValueGraph } from "../charts/value_graph";
import { count, short, signed } from "../format";
import { useFetch } from "../loading";
import { link, replace } from "../router";
import { MoveList } from "../ui/moves";
import { Button, Waiting } from "../ui/parts";
import { CopyLink } from "../ui/share";
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
  const [playing, setPlaying] = useState(false);
  const show = (next: number) => {
    setPlaying(false);
    setPly(Math.max(0, Math.min(last, next)));
  };
  const flip = () => setBottom(otherSide);
  useReplayKeys({ show, ply, last, flip });
  useEffect(() => replace(link(["games", run, game.id], ply ? { ply } : {})), [ply]);
  useEffect(() => {
    if (!playing || ply >= last) return;
    const timer = setTimeout(() => setPly(ply + 1), 700);
    return () => clearTimeout(timer);
  }, [playing, ply]);
  const position = game.positions[ply]!;
  const record = (format: string) => `api/${path("runs", run, "games", game.id, "record")}?format=${format}`;
  const running = playing && ply < last;
  return (
    <div class="game-layout">
      <Board position={position} bottom={bottom} label={`Game ${game.id}, move ${ply} of ${last}`} />
      <aside class="card side">
        <h1 class="players">
          <span class={game.winner === "black" ? "won" : undefined}>☗ {game.black}</span>
          <span class={game.winner === "white" ? "won" : undefined}>☖ {game.white}</span>
        </h1>
        <p class="muted">
          {resultOf(game)} after {count(game.length)} moves · {game.kind}, step {short(game.step)}
        </p>
        <div class="value">
          <p>
            Value for Black <b>{signed(game.values[ply])}</b>
          </p>
          <ValueGraph values={game.values} ply={ply} onChoose={show} />
        </div>
        <div class="controls" role="group" aria-label="Replay">
          <Button icon="first" label="To the start" disabled={ply === 0} onClick={() => show(0)} />
          <Button icon="previous" label="One move back" disabled={ply === 0} onClick={() => show(ply - 1)} />
          <Button
            kind="main"
            icon={running ? "pause" : "play"}
            label={running ? "Pause" : "Play the moves"}
            onClick={() => {
              if (ply >= last) setPly(0);
              setPlaying(!running);
            }}
          />
          <Button icon="next" label="One move on" disabled={ply === last} onClick={() => show(ply + 1)} />
          <Button icon="last" label="To the end" disabled={ply === last} onClick={() => show(last)} />
        </div>
        <label class="ply">
          <span class="unseen">Move</span>
          <input type="range" min={0} max={last} value={ply} onInput={(event) => show(Number(event.currentTarget.value))} />
          <b class="numbers">
            {ply} / {last}
          </b>
        </label>
        <MoveList moves={game.moves} ply={ply} onChoose={show} />
        <div class="tools">
          <Button kind="quiet" icon="flip" onClick={flip}>
            Flip
          </Button>
          <CopyLink address={link(["position"], { sfen: position.sfen })} />
          <a class="button quiet" href={link(["play"], { start: position.sfen })}>
            Play from here
          </a>
          <a class="button plain" href={record("kif")} download>
            KIF
          </a>
          <a class="button plain" href={record("csa")} download>
            CSA
          </a>
        </div>
      </aside>
    </div>
  );
}

interface Keys {
  show: (ply: number) => void;
  ply: number;
  last: number;
  flip: () => void;
}

function useReplayKeys({ show, ply, last, flip }: Keys) {
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || target.matches("input, select, textarea")) return;
      const action = {
        ArrowLeft: () => show(ply - 1),
        ArrowRight: () => show(ply + 1),
        Home: () => show(0),
        End: () => show(last),
        f: flip,
      }[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [ply, last]);
}
