/** The stand with a side's captured pieces. */
import type { Side } from "../api";
import { memo } from "../memo";
import type { PieceSet } from "../store";
import type { MovesByOrigin } from "./board";
import { PieceShape } from "./pieces";
import { type Hand, HAND_KINDS, type Kind, pieceName } from "./sfen";

interface HandProps {
  side: Side;
  up: boolean;
  hand: Hand;
  set: PieceSet;
  turn: boolean;
  chosen: string | null;
  dragged: string | null;
  /** The moves of the side whose turn it is; null for the other one. */
  playable: MovesByOrigin | null;
  onPress: (origin: string) => void;
}

export const HandStand = memo(function HandStand(props: HandProps) {
  const { side, up, hand, turn } = props;
  const held = HAND_KINDS.filter((kind) => hand[kind]);
  const name = side === "black" ? "Black" : "White";
  return (
    <div class={`hand ${up ? "below" : "above"}${turn ? " turn" : ""}`} role="group" aria-label={`${name}'s hand`}>
      <span class="whose" aria-hidden="true">
        {side === "black" ? "☗" : "☖"}
      </span>
      <div class="slots">
        {HAND_KINDS.map((kind) => (
          <div class="slot" key={kind}>
            {hand[kind] ? <HeldPiece {...props} kind={kind} count={hand[kind]} /> : null}
          </div>
        ))}
      </div>
      {held.length === 0 && <span class="unseen">empty</span>}
    </div>
  );
});

function HeldPiece(props: HandProps & { kind: Kind; count: number }) {
  const { kind, count, side, up, set, chosen, dragged, playable, onPress } = props;
  const origin = `${kind}*`;
  const piece = { kind, promoted: false, side };
  const movable = playable?.has(origin) ?? false;
  const label = `${side} ${pieceName(piece)} in hand, ${count}`;
  const left = count - (dragged === origin && movable ? 1 : 0);
  const content = (
    <>
      <svg viewBox="-46 -52 92 106" aria-hidden="true" opacity={left ? undefined : 0.3}>
        <PieceShape piece={piece} set={set} up={up} />
      </svg>
      {left > 1 && <span class="count">{left}</span>}
    </>
  );
  if (!playable?.size) {
    return (
      <span class="held" role="img" aria-label={label}>
        {content}
      </span>
    );
  }
  return (
    <button
      type="button"
      class={`held${movable ? " movable" : ""}`}
      data-hand={origin}
      aria-label={label}
      aria-pressed={movable && chosen === origin}
      disabled={!movable}
      onClick={() => onPress(origin)}
    >
      {content}
    </button>
  );
}
