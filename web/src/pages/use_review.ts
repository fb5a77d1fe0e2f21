/** A review while the server makes it, and what its numbers mean. */
import { useCallback, useEffect, useState } from "preact/hooks";
import { ApiError, type Judged, listen, path, type Problem, type ReviewUpdate, type Side } from "../api";

export interface Review {
  /** Of the first positions, as far as the search has come; mistakes are looked at again. */
  judged: Judged[];
  /** Black's, one for each position: by the search, or at a glance. */
  values: (number | null)[];
  /** How many positions were searched, and how many there are to search; some of them twice. */
  searched: number;
  total: number;
  done: boolean;
  problem: string | null;
  again: () => void;
}

/** Reviews a kept game as long as the page shows it. */
export function useReview(id: number): Review {
  const [judged, setJudged] = useState<Judged[]>([]);
  const [glance, setGlance] = useState<(number | null)[]>([]);
  const [[searched, total], setProgress] = useState([0, 0]);
  const [problem, setProblem] = useState<string | null>(null);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const left = new AbortController();
    setProblem(null);
    listen(
      path("kept", id, "review", "stream"),
      {
        review: (update: ReviewUpdate) => {
          setProgress([update.done, update.total]);
          if (update.values.length) setGlance(update.values);
          setJudged((old) => {
            const all = [...old];
            for (const one of update.judged) all[one.ply] = one;
            return all;
          });
        },
        problem: (said: Problem) => setProblem(said.detail),
      },
      left.signal,
    ).catch((error) => {
      if (!left.signal.aborted) setProblem(error instanceof ApiError ? error.message : String(error));
    });
    return () => left.abort();
  }, [id, turn]);
  const values = glance.map((value, ply) => judged[ply]?.value ?? value);
  const done = total > 0 && searched === total;
  return { judged, values, searched, total, done, problem, again: useCallback(() => setTurn((n) => n + 1), []) };
}

/** The plies after the three moves of a side that lost most, the worst one first. */
export function worstOf(judged: Judged[], side: Side, first: Side): number[] {
  return judged
    .filter(({ ply, loss }) => loss !== null && loss >= 0.02 && (ply % 2 === 1) === (side === first))
    .sort((a, b) => b.loss! - a.loss!)
    .slice(0, 3)
    .map(({ ply }) => ply);
}
