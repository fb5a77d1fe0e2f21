/** One position, looked into deeper and deeper: several lines at once, as long as it is shown. */
import { useEffect, useState } from "preact/hooks";
import { type AnalysedLine, type AnalysisUpdate, ApiError, listen, path, type Problem, type Side } from "../api";
import type { Arrow } from "../board/marks";
import { chance, count, percent } from "../format";
import { settings, useStore } from "../store";
import { Button, sentence } from "../ui/parts";

export interface Analysis {
  on: boolean;
  toggle: () => void;
  /** What is known of the position that is shown. */
  found: AnalysisUpdate | null;
  problem: string | null;
}

/** Analyses a node of a kept game while it is switched on; in a retry it would give the answer away. */
export function useAnalysis(id: number, node: number, allowed: boolean): Analysis {
  const [on, setOn] = useState(false);
  const [found, setFound] = useState<AnalysisUpdate | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    setFound(null);
    setProblem(null);
    if (!on || !allowed) return;
    const left = new AbortController();
    const handlers = { analysis: setFound, problem: (said: Problem) => setProblem(said.detail) };
    listen(`${path("kept", id, "analysis", "stream")}?node=${node}`, handlers, left.signal).catch((error) => {
      if (!left.signal.aborted) setProblem(error instanceof ApiError ? error.message : String(error));
    });
    return () => left.abort();
  }, [id, node, on, allowed]);
  return { on, toggle: () => setOn(!on), found, problem };
}

/** The first move of each line: the better, the wider. Of drops on one square, the best. */
export function analysisArrows(found: AnalysisUpdate): Arrow[] {
  const arrows = found.lines.map(({ moves }, i) => ({ usi: moves[0]!.usi, weight: 1 - i / 3, best: i === 0 }));
  const place = ({ usi }: Arrow) => (usi[1] === "*" ? usi.slice(1) : usi);
  return arrows.filter((one, i) => arrows.findIndex((other) => place(other) === place(one)) === i);
}

interface Props {
  analysis: Analysis;
  turn: Side;
  onMove: (usi: string) => void;
}

export function AnalysisPanel({ analysis, turn, onMove }: Props) {
  const { on, toggle, found, problem } = analysis;
  return (
    <section class="analysis" aria-label="Analysis">
      <div class="row">
        <Button icon="deeper" pressed={on} onClick={toggle}>
          Analyse
        </Button>
        {on && !problem && <p class="muted numbers">{stateText(found)}</p>}
      </div>
      {problem && (
        <p class="note error" role="alert">
          {sentence(problem)}
        </p>
      )}
      {found && found.lines.length > 0 && (
        <ol>
          {found.lines.map((line) => (
            <Line key={line.moves[0]!.usi} line={line} turn={turn} onMove={onMove} />
          ))}
        </ol>
      )}
    </section>
  );
}

function stateText(found: AnalysisUpdate | null): string {
  if (!found) return "Thinking…";
  if (found.over && found.lines.length === 0) return "There is no legal move.";
  return `${count(found.nodes)} positions${found.over ? ", done" : "…"}`;
}

function Line({ line, turn, onMove }: { line: AnalysedLine; turn: Side; onMove: (usi: string) => void }) {
  const { notation } = useStore(settings);
  const [first, ...rest] = line.moves;
  const worth = line.mate ? mateText(line.mate, turn) : percent(chance(line.value, turn));
  return (
    <li>
      <button type="button" onClick={() => onMove(first!.usi)} aria-label={`Play ${first![notation]}, ${worth}`}>
        <b class="numbers">{worth}</b> {first![notation]}
      </button>{" "}
      <span class="muted">{rest.map((move) => move[notation]).join(" ")}</span>
    </li>
  );
}

/** Whether the player to move mates, or is mated. */
function mateText(mate: number, turn: Side): string {
  return `${mate > 0 === (turn === "black") ? "mates" : "mated"} in ${Math.abs(mate)}`;
}
