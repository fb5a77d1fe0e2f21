/** Where things are on the drawn board. The origin is the board's top left corner. */
import type { Side } from "../api";
import { RANKS } from "./sfen";

export const CELL_W = 100;
export const CELL_H = 109;
export const MARGIN = { left: 20, top: 44, right: 44, bottom: 20 };
export const WIDTH = MARGIN.left + 9 * CELL_W + MARGIN.right;
export const HEIGHT = MARGIN.top + 9 * CELL_H + MARGIN.bottom;

/** The square in this row and column as they are seen, with `bottom` sitting below. */
export function squareAt(row: number, column: number, bottom: Side): string {
  const file = bottom === "black" ? 9 - column : column + 1;
  const rank = bottom === "black" ? row : 8 - row;
  return `${file}${RANKS[rank]}`;
}

export function cellOf(square: string, bottom: Side): { row: number; column: number } {
  const file = Number(square[0]);
  const rank = RANKS.indexOf(square[1]!);
  return bottom === "black"
    ? { row: rank, column: 9 - file }
    : { row: 8 - rank, column: file - 1 };
}

export function center(square: string, bottom: Side): { x: number; y: number } {
  const { row, column } = cellOf(square, bottom);
  return { x: (column + 0.5) * CELL_W, y: (row + 0.5) * CELL_H };
}
