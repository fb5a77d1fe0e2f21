/** A game that is analysed while one looks: the graph, what each move lost, and what was better. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { type KeptGame, path, type Side } from "../api";
import { Board } from "../board/board";
import type { Arrow } from "../board/marks";
import { otherSide } from "../board/sfen";
import { ValueGraph } from "../charts/value_graph";
import { count, percent } from "../format";
import { useFetch } from "../loading";
import { link, replace } from "../router";
import { settings, useStore } from "../store";
import { Loss, markOf, MoveList } from "../ui/moves";
import { Button, Progress, sentence, Waiting } from "../ui/parts";
import { ReplayControls, useReplayKeys } from "../ui/replay";
import { CopyLink } from "../ui/share";
import { resultOf } from "./games";
import { playerOf } from "./yours";
import { chance, type Review, useReview, worstOf } from "./use_review";

export function ReviewPage({ id, query }: { id: number; query: URLSearchParams }) {
  const { data, error, reload } = useFetch<KeptGame>(path("kept", id));
  if (!data) {
    return (
      <>
        <h1>Review</h1>
        <Waiting error={error} what="this game" onRetry={reload} />
      </>
    );
  }
  return <Reviewing game={data} start={Number(query.get("ply") ?? 0) || 0} />;
}

function Reviewing({ game, start }: { game: KeptGame; start: number }) {
  const last = game.moves.length;
  const [ply, setPly] = useState(Math.max(0, Math.min(last, start)));
  const [bottom, setBottom] = useState<Side>(game.side ?? "black");
  const review = useReview(game.id);
  const show = (next: number) => setPly(Math.max(0, Math.min(last, next)));
  const flip = () => setBottom(otherSide);
  useReplayKeys({ ply, last, onShow: show }, flip);
  useEffect(() => replace(link(["review", game.id], ply ? { ply } : {})), [ply]);
  const arrows = useMemo(() => arrowsAt(game, review, ply), [ply, review.judged]);
  const losses = useMemo(() => review.judged.slice(1).map(({ loss }) => loss), [review.judged]);
  const record = (format: string) => `api/${path("kept", game.id, "record")}?format=${format}`;
  return (
    <>
    <p class="crumb">
      <a href={link(["yours"])}>Your games</a>
    </p>
    <div class="game-layout">
      <div class="board-column">
        <Board
          position={game.positions[ply]!}
          bottom={bottom}
          arrows={arrows}
          label={`Review, move ${ply} of ${last}`}
        />
        <ReplayControls ply={ply} last={last} onShow={show} />
      </div>
      <aside class="card side">
        <h1 class="players">
          <span class={game.winner === "black" ? "won" : undefined}>☗ {playerOf(game, "black")}</span>
          <span class={game.winner === "white" ? "won" : undefined}>☖ {playerOf(game, "white")}</span>
        </h1>
        <p class="muted">
          {game.reason === null ? "Not finished" : resultOf({ winner: game.winner, reason: game.reason })} after{" "}
          {count(last)} moves
        </p>
        <State review={review} />
        <Chances review={review} ply={ply} losses={losses} onShow={show} />
        <Advice game={game} review={review} ply={ply} />
        <Worst game={game} review={review} onShow={show} />
        <MoveList moves={game.moves} ply={ply} onChoose={show} losses={losses} />
        <div class="tools">
          <Button kind="quiet" icon="flip" onClick={flip}>
            Flip
          </Button>
          <CopyLink address={link(["position"], { sfen: game.positions[ply]!.sfen })} />
          <a class="button quiet" href={link(["play"], { start: game.positions[ply]!.sfen })}>
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
    </>
  );
}

/** The best line, and what was played instead. */
function arrowsAt(game: KeptGame, review: Review, ply: number): Arrow[] {
  const here = review.judged[ply];
  const played = game.moves[ply]?.usi;
  if (!here) return [];
  const line = here.line.slice(0, 3).map(({ usi }, i) => ({ usi, weight: 1 - i / 2, best: i === 0 }));
  const other = played && played !== here.best ? [{ usi: played, weight: 0.5, played: true }] : [];
  return [...other, ...line.filter(({ usi }, i) => i === 0 || usi !== played)];
}

function State({ review }: { review: Review }) {
  const { judged, total, problem, again } = review;
  if (problem) {
    return (
      <div class="note error" role="alert">
        <p>{sentence(problem)}</p>
        <Button onClick={again}>Try again</Button>
      </div>
    );
  }
  const done = total > 0 && judged.length === total;
  return (
    <div class="review-state">
      <p class="muted" role="status">
        {done ? "All moves are analysed." : `Analysing: ${count(judged.length)} of ${total ? count(total) : "…"} positions`}
      </p>
      {!done && <Progress share={total ? judged.length / total : 0} label="Positions analysed" />}
    </div>
  );
}

interface PartProps {
  game: KeptGame;
  review: Review;
}

interface ChancesProps {
  review: Review;
  ply: number;
  losses: (number | null)[];
  onShow: (ply: number) => void;
}

function Chances({ review, ply, losses, onShow }: ChancesProps) {
  const value = review.values[ply];
  const mate = review.judged[ply]?.mate;
  return (
    <div class="value">
      <p>
        Chance to win
        <b>
          {value == null ? "–" : `☗ ${percent(chance(value, "black"))}  ☖ ${percent(chance(value, "white"))}`}
          {mate ? ` · ${mate > 0 ? "☗" : "☖"} mates in ${Math.abs(mate)}` : ""}
        </b>
      </p>
      <ValueGraph values={review.values} ply={ply} onChoose={onShow} losses={losses} />
    </div>
  );
}

/** What was played in this position, and what was better. */
function Advice({ game, review, ply }: PartProps & { ply: number }) {
  const { notation } = useStore(settings);
  const here = review.judged[ply];
  const played = game.moves[ply];
  const loss = review.judged[ply + 1]?.loss;
  if (!here || here.line.length === 0) return null;
  const mark = markOf(loss);
  return (
    <div class="advice">
      {played && (
        <p>
          Played <b>{played[notation]}</b>{" "}
          {played.usi === here.best ? (
            <span class="good">the best move</span>
          ) : loss == null ? null : (
            <span class={mark ?? "muted"}>{lossText(loss)}</span>
          )}
        </p>
      )}
      <p>
        Best <b>{here.line[0]![notation]}</b>{" "}
        <span class="muted">{here.line.slice(1).map((move) => move[notation]).join(" ")}</span>
      </p>
    </div>
  );
}

function lossText(loss: number): string {
  const mark = markOf(loss);
  return loss < 0.005 ? "as good" : `lost ${percent(loss)}${mark ? ` · ${mark}` : ""}`;
}

function Worst({ game, review, onShow }: PartProps & { onShow: (ply: number) => void }) {
  const { notation } = useStore(settings);
  const first = game.positions[0]!.turn;
  return (
    <div class="worst" role="group" aria-label="Worst moves">
      {(["black", "white"] as const).map((side) => {
        const plies = worstOf(review.judged, side, first);
        return (
          <div key={side}>
            <h2>
              {side === "black" ? "☗" : "☖"} {side === game.side ? "Your worst" : "Worst moves"}
            </h2>
            {plies.length === 0 && <p class="muted">None{review.judged.length < review.total && " so far"}</p>}
            <ol>
              {plies.map((ply) => (
                <li key={ply}>
                  <button type="button" onClick={() => onShow(ply - 1)}>
                    <span class="muted">{ply}</span> {game.moves[ply - 1]![notation]}{" "}
                    <Loss loss={review.judged[ply]!.loss} />
                  </button>
                </li>
              ))}
            </ol>
          </div>
        );
      })}
    </div>
  );
}
