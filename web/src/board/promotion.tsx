/** Promote or not: two pieces over the square that the piece came to. */
import { useEffect, useRef } from "preact/hooks";
import type { Side } from "../api";
import type { PieceSet } from "../store";
import { cellOf, CELL_H, CELL_W, HEIGHT, MARGIN, WIDTH } from "./geometry";
import { PieceIcon } from "./pieces";
import { type Piece, pieceName } from "./sfen";

interface Props {
  to: string;
  piece: Piece;
  bottom: Side;
  set: PieceSet;
  onChoose: (promote: boolean) => void;
  onCancel: () => void;
}

export function PromotionChoice({ to, piece, bottom, set, onChoose, onCancel }: Props) {
  const first = useRef<HTMLButtonElement>(null);
  useEffect(() => first.current?.focus(), []);
  const { row, column } = cellOf(to, bottom);
  const left = Math.max(0, Math.min(7, column - 0.5));
  const style = {
    left: `${((MARGIN.left + left * CELL_W) / WIDTH) * 100}%`,
    top: `${((MARGIN.top + row * CELL_H) / HEIGHT) * 100}%`,
  };
  return (
    <div class="veil" onClick={onCancel}>
      <div
        class="promotion"
        style={style}
        role="dialog"
        aria-modal="true"
        aria-label="Promote?"
        onClick={(event) => event.stopPropagation()}
      >
        {[true, false].map((promote) => (
          <button
            type="button"
            ref={promote ? first : undefined}
            class={promote ? "promote" : "stay"}
            aria-label={promote ? `Promote to ${pieceName({ ...piece, promoted: true })}` : `Stay a ${pieceName(piece)}`}
            onClick={() => onChoose(promote)}
          >
            <PieceIcon piece={{ ...piece, promoted: promote }} set={set} />
          </button>
        ))}
      </div>
    </div>
  );
}
