/** The board with both hands: shows a position, and lets a person move where the server allows it. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Position, Side } from "../api";
import { memo } from "../memo";
import { settings, useStore } from "../store";
import { usePieceDrag } from "./drag";
import { CELL_H, CELL_W, cellOf, center, HEIGHT, MARGIN, squareAt, WIDTH } from "./geometry";
import { HandStand } from "./hand";
import { type Arrow, Grid, MoveArrow, SquareMark, Target } from "./marks";
import { PieceShape } from "./pieces";
import { PromotionChoice } from "./promotion";
import { otherSide, parseMove, parseSfen, type Piece, pieceName, type Placed } from "./sfen";

export interface BoardProps {
  position: Position;
  /** Who sits below. */
  bottom?: Side;
  /** Moves that a person may make now; without any the board only shows. */
  legal?: string[];
  onMove?: (usi: string) => void;
  arrows?: Arrow[];
  label?: string;
}

const NO_MOVES: string[] = [];
const INDICES = [0, 1, 2, 3, 4, 5, 6, 7, 8];

export function Board({ position, bottom = "black", legal = NO_MOVES, onMove, arrows, label }: BoardProps) {
  const { pieces: set, notation } = useStore(settings);
  const diagram = useMemo(() => parseSfen(position.sfen), [position.sfen]);
  const moves = useMemo(() => movesByOrigin(legal), [legal]);
  const [chosen, setChosen] = useState<string | null>(null);
  const [promotion, setPromotion] = useState<{ from: string; to: string } | null>(null);
  const [cursor, setCursor] = useState("5i");
  const root = useRef<HTMLDivElement>(null);

  useEffect(() => {
    setChosen(null);
    setPromotion(null);
  }, [position.sfen, legal]);

  const targets = chosen ? moves.get(chosen) : undefined;

  const play = (from: string, to: string): boolean => {
    const ways = moves.get(from)?.get(to);
    if (!ways) return false;
    setChosen(null);
    if (ways.length > 1) setPromotion({ from, to });
    else onMove?.(ways[0]!);
    return true;
  };
  const press = (origin: string) => {
    if (chosen && play(chosen, origin)) return;
    setChosen(moves.has(origin) && chosen !== origin ? origin : null);
  };
  const pieceOf = (origin: string): Piece | undefined =>
    origin.endsWith("*")
      ? { kind: origin[0] as Piece["kind"], promoted: false, side: position.turn }
      : diagram.pieces.get(origin);

  const drag = usePieceDrag({
    root,
    canDrag: (origin) => moves.has(origin),
    onStart: setChosen,
    onDrop: (origin, square) => {
      if (square && square !== origin) play(origin, square);
    },
  });

  const onKey = (event: KeyboardEvent) => {
    if (event.key === "Escape") {
      setChosen(null);
      setPromotion(null);
      return;
    }
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!step || !(event.target as HTMLElement).dataset.square) return;
    event.preventDefault();
    event.stopPropagation();
    const { row, column } = cellOf(cursor, bottom);
    const next = squareAt(clamp(row + step[0]!), clamp(column + step[1]!), bottom);
    setCursor(next);
    root.current?.querySelector<HTMLElement>(`.squares [data-square="${next}"]`)?.focus();
  };

  const above = otherSide(bottom);
  const last = position.last ? parseMove(position.last) : null;
  const checked = position.check ? kingOf(diagram.pieces, position.turn) : null;
  const hand = (side: Side) => (
    <HandStand
      side={side}
      up={side === bottom}
      hand={diagram.hands[side]}
      set={set}
      turn={position.turn === side}
      chosen={chosen}
      dragged={drag.origin}
      playable={position.turn === side ? moves : null}
      onPress={press}
    />
  );
  return (
    <div
      class={`table${legal.length ? " playing" : ""}`}
      ref={root}
      role="group"
      aria-label={label ?? "Shogi board"}
      onKeyDown={onKey}
      {...drag.handlers}
    >
      {hand(above)}
      <div class="board">
        <svg viewBox={`${-MARGIN.left} ${-MARGIN.top} ${WIDTH} ${HEIGHT}`} aria-hidden="true">
          {last && !last.from.endsWith("*") && (
            <SquareMark square={last.from} bottom={bottom} kind="last-from" />
          )}
          {last && <SquareMark square={last.to} bottom={bottom} kind="last" />}
          {chosen && !chosen.endsWith("*") && (
            <SquareMark square={chosen} bottom={bottom} kind="chosen" />
          )}
          {checked && <Glow square={checked} bottom={bottom} />}
          <Grid bottom={bottom} notation={notation} />
          <Pieces position={position} pieces={diagram.pieces} bottom={bottom} set={set} faded={drag.origin} />
          {targets &&
            [...targets.keys()].map((square) => (
              <Target key={square} square={square} bottom={bottom} taken={diagram.pieces.has(square)} />
            ))}
          {!chosen && !promotion && arrows?.map((arrow, i) => <MoveArrow key={i} arrow={arrow} bottom={bottom} />)}
        </svg>
        <div class="squares" role="grid" aria-label="Squares" aria-readonly={!legal.length}>
          {INDICES.map((row) => (
            <div role="row" key={row}>
              {INDICES.map((column) => {
                const square = squareAt(row, column, bottom);
                return (
                  <Square
                    key={square}
                    square={square}
                    piece={diagram.pieces.get(square)}
                    tabbable={square === cursor}
                    movable={moves.has(square)}
                    target={targets?.has(square) ?? false}
                    chosen={chosen === square}
                    onPress={press}
                    onFocus={setCursor}
                  />
                );
              })}
            </div>
          ))}
        </div>
        {promotion && (
          <PromotionChoice
            {...promotion}
            piece={pieceOf(promotion.from)!}
            bottom={bottom}
            set={set}
            onChoose={(promote) => {
              setPromotion(null);
              onMove?.(`${promotion.from}${promotion.to}${promote ? "+" : ""}`);
            }}
            onCancel={() => setPromotion(null)}
          />
        )}
      </div>
      {hand(bottom)}
      {drag.origin && (
        <svg class="dragged" viewBox="-50 -54.5 100 109" ref={drag.ghost} aria-hidden="true">
          <PieceShape piece={pieceOf(drag.origin)!} set={set} up={position.turn === bottom} />
        </svg>
      )}
    </div>
  );
}

interface SquareProps {
  square: string;
  piece?: Placed;
  tabbable: boolean;
  movable: boolean;
  target: boolean;
  chosen: boolean;
  onPress: (square: string) => void;
  onFocus: (square: string) => void;
}

function Square({ square, piece, tabbable, movable, target, chosen, onPress, onFocus }: SquareProps) {
  const what = piece ? `${piece.side} ${pieceName(piece)}` : "empty";
  return (
    <button
      type="button"
      role="gridcell"
      class={movable ? "movable" : undefined}
      data-square={square}
      aria-label={`${square[0]} ${square[1]}, ${what}${target ? ", can move here" : ""}`}
      aria-selected={chosen}
      tabIndex={tabbable ? 0 : -1}
      onClick={() => onPress(square)}
      onFocus={() => onFocus(square)}
    />
  );
}

interface PiecesProps {
  position: Position;
  pieces: Map<string, Placed>;
  bottom: Side;
  set: "kanji" | "kanji2" | "western";
  faded: string | null;
}

/** All pieces; the one that just moved glides to its square. */
const Pieces = memo(function Pieces({ position, pieces, bottom, set, faded }: PiecesProps) {
  const moved = useRef<SVGGElement>(null);
  const shown = useRef<string | null>(null);
  const { last, sfen } = position;
  useEffect(() => {
    const before = shown.current;
    shown.current = sfen;
    if (before === null || before === sfen || !last || !moved.current) return;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const { from, to } = parseMove(last);
    if (from.endsWith("*") || !parseSfen(before).pieces.has(from)) return;
    const start = center(from, bottom);
    const end = center(to, bottom);
    moved.current.animate(
      [{ transform: `translate(${start.x - end.x}px, ${start.y - end.y}px)` }, { transform: "none" }],
      { duration: 170, easing: "cubic-bezier(.2,.7,.3,1)" },
    );
  }, [sfen, last, bottom]);
  const lastTo = last?.slice(2, 4);
  // The moved piece is drawn last, above those it glides over.
  const order = [...pieces.values()].sort((a, b) => Number(a.square === lastTo) - Number(b.square === lastTo));
  return (
    <g>
      {order.map((piece) => {
        const { x, y } = center(piece.square, bottom);
        return (
          <g
            key={`${piece.square}${piece.kind}${piece.promoted}${piece.side}`}
            transform={`translate(${x} ${y})`}
            opacity={faded === piece.square ? 0.3 : undefined}
          >
            <g ref={piece.square === lastTo ? moved : undefined}>
              <PieceShape piece={piece} set={set} up={piece.side === bottom} />
            </g>
          </g>
        );
      })}
    </g>
  );
});

function Glow({ square, bottom }: { square: string; bottom: Side }) {
  const { x, y } = center(square, bottom);
  return <ellipse cx={x} cy={y} rx={CELL_W * 0.68} ry={CELL_H * 0.66} fill="url(#check-glow)" />;
}

/** From where to where, and by which moves: with and without promotion. */
export type MovesByOrigin = Map<string, Map<string, string[]>>;

function movesByOrigin(legal: string[]): MovesByOrigin {
  const moves: MovesByOrigin = new Map();
  for (const usi of legal) {
    const { from, to } = parseMove(usi);
    const targets = moves.get(from) ?? new Map<string, string[]>();
    targets.set(to, [...(targets.get(to) ?? []), usi]);
    moves.set(from, targets);
  }
  return moves;
}

function kingOf(pieces: Map<string, Placed>, side: Side): string | null {
  for (const piece of pieces.values()) {
    if (piece.kind === "K" && piece.side === side) return piece.square;
  }
  return null;
}

const clamp = (index: number) => Math.max(0, Math.min(8, index));
