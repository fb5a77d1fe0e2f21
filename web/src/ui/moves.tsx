/** The moves of a game; the one that is shown stays in sight. */
import { useEffect, useRef } from "preact/hooks";
import type { MoveText } from "../api";
import { settings, useStore } from "../store";

interface Props {
  moves: MoveText[];
  ply: number;
  onChoose: (ply: number) => void;
}

export function MoveList({ moves, ply, onChoose }: Props) {
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
    <ol class="moves" ref={list} aria-label="Moves" tabIndex={0}>
      {moves.map((move, i) => (
        <li key={i}>
          <button
            type="button"
            tabIndex={-1}
            aria-current={ply === i + 1 ? "step" : undefined}
            onClick={() => onChoose(i + 1)}
          >
            <span class="muted">{i + 1}</span> {move[notation]}
          </button>
        </li>
      ))}
    </ol>
  );
}
