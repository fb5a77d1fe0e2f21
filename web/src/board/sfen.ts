/** Positions and moves as text: what stands where. Rules are the server's business. */
import type { Side } from "../api";

export type Kind = "K" | "R" | "B" | "G" | "S" | "N" | "L" | "P";
export const HAND_KINDS: Kind[] = ["R", "B", "G", "S", "N", "L", "P"];
export const RANKS = "abcdefghi";

export interface Piece {
  kind: Kind;
  promoted: boolean;
  side: Side;
}

export interface Placed extends Piece {
  square: string;
}

export type Hand = Partial<Record<Kind, number>>;

export interface Diagram {
  pieces: Map<string, Placed>;
  hands: Record<Side, Hand>;
}

export function parseSfen(sfen: string): Diagram {
  const [board = "", , hands = "-"] = sfen.split(" ");
  return { pieces: parseBoard(board), hands: parseHands(hands) };
}

function parseBoard(text: string): Map<string, Placed> {
  const pieces = new Map<string, Placed>();
  text.split("/").forEach((row, rank) => {
    let file = 9;
    for (const [sign] of row.matchAll(/\+?[a-zA-Z]|\d/g)) {
      if (/\d/.test(sign)) {
        file -= Number(sign);
        continue;
      }
      const square = `${file}${RANKS[rank]}`;
      pieces.set(square, { ...parsePiece(sign), square });
      file -= 1;
    }
  });
  return pieces;
}

function parsePiece(sign: string): Piece {
  const letter = sign.at(-1)!;
  const side = letter === letter.toUpperCase() ? "black" : "white";
  return { kind: letter.toUpperCase() as Kind, promoted: sign.startsWith("+"), side };
}

function parseHands(text: string): Record<Side, Hand> {
  const hands: Record<Side, Hand> = { black: {}, white: {} };
  for (const [, number, letter] of text.matchAll(/(\d*)([a-zA-Z])/g)) {
    const { kind, side } = parsePiece(letter!);
    hands[side][kind] = Number(number || 1);
  }
  return hands;
}

export interface ParsedMove {
  /** A square, or the piece that is dropped ("P*"). */
  from: string;
  to: string;
  promote: boolean;
}

export function parseMove(usi: string): ParsedMove {
  return { from: usi.slice(0, 2), to: usi.slice(2, 4), promote: usi.endsWith("+") };
}

const NAMES: Record<Kind, string> = {
  K: "king", R: "rook", B: "bishop", G: "gold", S: "silver", N: "knight", L: "lance", P: "pawn",
};
const PROMOTED: Partial<Record<Kind, string>> = { R: "dragon", B: "horse", P: "tokin" };

export function pieceName({ kind, promoted }: { kind: Kind; promoted: boolean }): string {
  if (!promoted) return NAMES[kind];
  return PROMOTED[kind] ?? `promoted ${NAMES[kind]}`;
}

export function otherSide(side: Side): Side {
  return side === "black" ? "white" : "black";
}
