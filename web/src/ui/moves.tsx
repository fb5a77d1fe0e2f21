/** The moves of a game; the one that is shown stays in sight. */
import { useEffect, useRef } from "preact/hooks";
import type { MoveText } from "../api";
import { lossPercent } from "../format";
import { settings, useStore } from "../store";

interface Props {
  moves: MoveText[];
  ply: number;
  onChoose: (ply: number) => void;
  /** What each move gave away of the chance to win, as far as it is known. */
  losses?: (number | null)[];
}

export function MoveList({ moves, ply, onChoose, losses }: Props) {
  const { notation } = useStore(settings);
  const list = useRef<HTMLOListElement>(null);
  useEffect(() => {
    const box = list.current;
    const now = box?.querySelector<HTMLElement>("[aria-current]");
    if (!box) return;
    if (!now) box.scrollTop = 0;
    else box.scrollTop = now.offsetTop - box.clientHeight / 2 + now.offsetHeight / 2;
  }, [ply, moves.length]);
  if (moves.length === 0) return <p class="moves hint">No moves yet.</p>;
  return (
    <ol class={`moves${losses ? " marked" : ""}`} ref={list} aria-label="Moves" tabIndex={0}>
      {moves.map((move, i) => (
        <li key={i}>
          <button
            type="button"
            tabIndex={-1}
            aria-current={ply === i + 1 ? "step" : undefined}
            onClick={() => onChoose(i + 1)}
          >
            <span class="muted">{i + 1}</span> {move[notation]} <Loss loss={losses?.[i]} brief />
          </button>
        </li>
      ))}
    </ol>
  );
}

export type Mark = "inaccuracy" | "mistake" | "blunder";
const SIGNS: Record<Mark, string> = { inaccuracy: "?!", mistake: "?", blunder: "??" };

/** How bad a move is, by the chance to win that it gave away. */
export function markOf(loss: number | null | undefined): Mark | null {
  if (loss == null || loss < 0.05) return null;
  return loss < 0.1 ? "inaccuracy" : loss < 0.2 ? "mistake" : "blunder";
}

export function Loss({ loss, brief }: { loss: number | null | undefined; brief?: boolean }) {
  const mark = markOf(loss);
  if (loss == null || loss < 0.01) return null;
  return (
    <span class={`loss ${mark ?? "muted"}`}>
      −{brief ? lossPercent(loss).replace(" %", "") : lossPercent(loss)}
      {mark && ` ${SIGNS[mark]}`}
    </span>
  );
}
