/** From each of a side's worst moves: find a better one. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, type Judgement, type KeptGame, path, post, type Side } from "../api";
import type { Arrow } from "../board/marks";
import { chance, lossPercent, percent } from "../format";
import { type Notation, settings, useStore } from "../store";
import { Button, sentence } from "../ui/parts";
import { type Review, worstOf } from "./use_review";

/** As good as the best move. */
const ENOUGH = 0.02;

interface State {
  side: Side;
  /** The positions after the moves to improve. */
  plies: number[];
  at: number;
  /** The move that is being judged; an answer to another one comes too late. */
  asked: string | null;
  tried: Judgement | null;
  answer: boolean;
  problem: string | null;
}

/** Nothing has been tried yet. */
const FRESH = { asked: null, tried: null, answer: false, problem: null };

export interface Retry {
  state: State;
  /** The position that is asked about. */
  ply: number;
  attempt: (usi: string) => void;
  next: () => void;
  stop: () => void;
  reveal: () => void;
}

export function useRetry(game: KeptGame, review: Review, onStop: (ply: number) => void) {
  const [state, setState] = useState<State | null>(null);
  const begin = (side: Side) => {
    const plies = worstOf(review.judged, side, game.positions[0]!.turn);
    setState({ side, plies, at: 0, ...FRESH });
  };
  if (!state) return { retry: null, begin };
  const ply = state.plies[state.at]! - 1;
  const stop = () => {
    setState(null);
    onStop(ply);
  };
  const attempt = async (usi: string) => {
    const { at } = state;
    const moves = [...game.moves.slice(0, ply).map((move) => move.usi), usi];
    const settle = (what: Partial<State>) =>
      setState((old) => (old?.at === at && old.asked === usi ? { ...old, asked: null, ...what } : old));
    setState({ ...state, asked: usi, tried: null, problem: null });
    try {
      settle({ tried: await post<Judgement>(`${path("kept", game.id)}/judge`, { moves }) });
    } catch (error) {
      settle({ problem: error instanceof ApiError ? error.message : String(error) });
    }
  };
  const next = () => {
    if (state.at + 1 === state.plies.length) stop();
    else setState({ ...state, at: state.at + 1, ...FRESH });
  };
  const reveal = () => setState({ ...state, answer: true });
  const retry: Retry = { state, ply, attempt, next, stop, reveal };
  return { retry, begin };
}

/** What was tried, and the best line when it is asked for. */
export function retryArrows({ state, ply }: Retry, review: Review): Arrow[] {
  const tried = state.tried?.move;
  const loss = state.tried?.judged.loss ?? 0;
  const usi = state.asked ?? tried?.usi;
  const own = usi ? [{ usi, weight: 0.8, best: tried !== undefined && loss <= ENOUGH, played: loss > ENOUGH }] : [];
  const best = review.judged[ply]?.best;
  return state.answer && best && best !== tried?.usi ? [...own, { usi: best, weight: 1, best: true }] : own;
}

export function RetryPanel({ retry, game, review }: { retry: Retry; game: KeptGame; review: Review }) {
  const { notation } = useStore(settings);
  const { state, ply } = retry;
  const played = game.moves[ply]!;
  const loss = review.judged[ply + 1]?.loss ?? 0;
  const sign = state.side === "black" ? "☗" : "☖";
  const last = state.at + 1 === state.plies.length;
  const panel = useRef<HTMLElement>(null);
  useEffect(() => panel.current?.scrollIntoView({ block: "end" }), [state]); // on a phone, right below the board
  return (
    <section class="retry-panel" aria-label="Retry" ref={panel}>
      <h2>
        Find a better move{" "}
        <span class="muted">
          {state.at + 1} of {state.plies.length}
        </span>
      </h2>
      <p>
        Move {ply + 1}: {sign} played <b>{played[notation]}</b> and lost {lossPercent(loss)}. What is better?
      </p>
      <p role="status">
        {state.asked && "Looking at your move…"}
        {state.tried && verdict(state.tried, state.side, loss, played.usi, notation)}
      </p>
      {state.problem && (
        <p class="note error" role="alert">
          {sentence(state.problem)}
        </p>
      )}
      {state.answer && (
        <p>
          Best <b>{review.judged[ply]?.line.map((move) => move[notation]).join(" ")}</b>
        </p>
      )}
      <div class="row">
        {!state.answer && <Button onClick={retry.reveal}>Show the answer</Button>}
        <Button kind="main" onClick={retry.next}>
          {last ? "Done" : "Next"}
        </Button>
        {!last && <Button onClick={retry.stop}>Leave</Button>}
      </div>
    </section>
  );
}

function verdict(tried: Judgement, side: Side, playedLoss: number, played: string, notation: Notation): string {
  const { before, judged } = tried;
  const name = tried.move![notation];
  const loss = judged.loss ?? 0;
  const most = chance(before!.value, side)!;
  const kept = `it keeps ${percent(Math.max(most - loss, 0))} of ${percent(most)}`;
  if (tried.move!.usi === played) return `${name} is what was played. Try another move.`;
  if (loss <= ENOUGH) return `${name}: very good, ${kept}.`;
  if (loss < playedLoss - ENOUGH) return `${name} is better than what was played: ${kept}. There is more to find.`;
  return `${name} is not better: ${kept}. Try again.`;
}
