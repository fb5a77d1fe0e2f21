/** What a review shows beside the board. */
import { useState } from "preact/hooks";
import type { Judged, KeptGame, Side } from "../api";
import { ValueGraph } from "../charts/value_graph";
import { chances, count, lossPercent, percent } from "../format";
import { settings, useStore } from "../store";
import { Loss, markOf } from "../ui/moves";
import { Button, Progress, sentence } from "../ui/parts";
import type { GameTree } from "./game_tree";
import { type Review, worstOf } from "./use_review";

export function ReviewState({ review }: { review: Review }) {
  const { searched, total, done, problem, again } = review;
  if (problem) {
    return (
      <div class="note error" role="alert">
        <p>{sentence(problem)}</p>
        <Button onClick={again}>Try again</Button>
      </div>
    );
  }
  const first = review.values.length; // then follow those around mistakes, once more
  const progress = `${count(searched)} of ${total ? count(first) : "…"} positions`;
  let text = total > 0 && searched >= first ? "Looking at the mistakes again" : `Analysing: ${progress}`;
  if (done) text = "All moves are analysed.";
  return (
    <div class="review-state">
      <p class="muted" role="status">
        {text}
      </p>
      {!done && <Progress share={total ? searched / total : 0} label="Positions analysed" />}
    </div>
  );
}

interface ChancesProps {
  review: Review;
  /** The position that is shown; beside the main line, what the search says of it. */
  here: Judged | undefined;
  /** Where the main line was left, or is. */
  ply: number;
  losses: (number | null)[];
  onShow: (ply: number) => void;
}

export function Chances({ review, here, ply, losses, onShow }: ChancesProps) {
  const value = here?.value ?? review.values[ply];
  return (
    <div class="value">
      <p>
        Chance to win
        <b>
          {chances(value)}
          {here?.mate ? ` · ${here.mate > 0 ? "☗" : "☖"} mates in ${Math.abs(here.mate)}` : ""}
        </b>
      </p>
      <ValueGraph values={review.values} ply={ply} onChoose={onShow} losses={losses} />
    </div>
  );
}

interface AdviceProps {
  tree: GameTree;
  node: number;
  here: Judged | undefined;
  /** What the next move of the main line lost, or, beside it, the move that led here. */
  loss: number | null | undefined;
  /** Better moves are shown elsewhere. */
  brief: boolean;
}

/** What was played in this position, and what was better. */
export function Advice({ tree, node, here, loss, brief }: AdviceProps) {
  const { notation } = useStore(settings);
  if (!here) return null;
  const main = tree.isMain(node);
  const played = main ? tree.game.moves[node] : tree.move(node);
  const best = main && played && played.usi === here.best;
  return (
    <div class="advice">
      {played && (
        <p>
          {main ? "Played" : "Tried"} <b>{played[notation]}</b>{" "}
          {best ? (
            <span class="good">the best move</span>
          ) : loss == null ? null : (
            <span class={markOf(loss) ?? "muted"}>{lossText(loss)}</span>
          )}
        </p>
      )}
      {!brief && here.line.length > 0 && (
        <p>
          Best <b>{here.line[0]![notation]}</b>{" "}
          <span class="muted">{here.line.slice(1).map((move) => move[notation]).join(" ")}</span>
        </p>
      )}
      {!brief && here.top.length > 1 && (
        <p class="muted">
          Others{" "}
          {here.top
            .slice(1)
            .map((move) => `${move[notation]}${move.value == null ? "" : ` ${percent((1 + move.value) / 2)}`}`)
            .join(", ")}
        </p>
      )}
    </div>
  );
}

function lossText(loss: number): string {
  const mark = markOf(loss);
  return loss < 0.005 ? "as good" : `lost ${lossPercent(loss)}${mark ? ` · ${mark}` : ""}`;
}

interface WorstProps {
  game: KeptGame;
  review: Review;
  onShow: (ply: number) => void;
  onRetry: (side: Side) => void;
}

export function Worst({ game, review, onShow, onRetry }: WorstProps) {
  const { notation } = useStore(settings);
  const first = game.positions[0]!.turn;
  const { done } = review;
  return (
    <div class="worst" role="group" aria-label="Worst moves">
      {(["black", "white"] as const).map((side) => {
        const plies = worstOf(review.judged, side, first);
        const name = side === "black" ? "☗" : "☖";
        return (
          <div key={side}>
            <h2>
              {name} {side === game.side ? "Your worst" : "Worst moves"}
            </h2>
            {plies.length === 0 && <p class="muted">None{!done && " so far"}</p>}
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
            {done && plies.length > 0 && (
              <Button kind={side === game.side ? "main" : "plain"} label={`Retry the worst moves of ${side}`} onClick={() => onRetry(side)}>
                Retry
              </Button>
            )}
          </div>
        );
      })}
    </div>
  );
}

interface VariationsProps {
  tree: GameTree;
  node: number;
  onShow: (node: number) => void;
}

/** The lines beside the main line; a move on the board begins another. */
export function Variations({ tree, node, onShow }: VariationsProps) {
  const { notation } = useStore(settings);
  const lines = tree.lines();
  if (lines.length === 0) return <p class="hint">Move a piece to begin a variation.</p>;
  return (
    <div class="variations" role="group" aria-label="Variations">
      {lines.map((line) => (
        <p key={line[0]}>
          {line.map((one) => (
            <button
              key={one}
              type="button"
              aria-current={one === node ? "step" : undefined}
              title={tree.comment(one) || undefined}
              onClick={() => onShow(one)}
            >
              <span class="muted">{tree.ply(one)}</span> {tree.move(one)![notation]}
              {tree.comment(one) && " ✎"}
            </button>
          ))}
        </p>
      ))}
    </div>
  );
}

export function Comment({ text, onSave }: { text: string; onSave: (text: string) => void }) {
  const [draft, setDraft] = useState(text);
  return (
    <label class="comment">
      <span>Comment</span>
      <textarea
        rows={2}
        maxLength={2000}
        value={draft}
        onInput={(event) => setDraft(event.currentTarget.value)}
        onBlur={() => draft !== text && onSave(draft)}
      />
    </label>
  );
}
