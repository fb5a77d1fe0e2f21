/** The pieces: pentagons of boxwood with kanji, or with letters and marks of how they move. */
import type { PieceSet } from "../store";
import { OUTLINES } from "./outlines";
import { type Kind, type Piece, pieceName } from "./sfen";

const KANJI: Record<string, string> = {
  K: "玉", R: "飛", B: "角", G: "金", S: "銀", N: "桂", L: "香", P: "歩",
  "+R": "龍", "+B": "馬", "+S": "全", "+N": "圭", "+L": "杏", "+P": "と",
};
const KANJI_PAIRS: Record<string, string> = {
  K: "玉将", R: "飛車", B: "角行", G: "金将", S: "銀将", N: "桂馬", L: "香車", P: "歩兵",
  "+R": "龍王", "+B": "龍馬", "+S": "成銀", "+N": "成桂", "+L": "成香", "+P": "と金",
};
/** Larger pieces are worth more, as on a real board. */
const SIZES: Record<Kind, number> = {
  K: 1.02, R: 1, B: 1, G: 0.95, S: 0.95, N: 0.91, L: 0.89, P: 0.86,
};
const BODY = "M0-47L27.5-37.5L38.5 44.5Q38.7 46.5 36.5 46.5H-36.5Q-38.7 46.5-38.5 44.5L-27.5-37.5Z";
const INK = "#1c120a";
const RED = "#b3140f";

type Step = [number, number];
const STRAIGHT: Step[] = [[0, -1], [1, 0], [0, 1], [-1, 0]];
const DIAGONAL: Step[] = [[1, -1], [1, 1], [-1, 1], [-1, -1]];
const GOLD: Step[] = [...STRAIGHT, [1, -1], [-1, -1]];
/** How a piece moves: steps, and slides as far as the way is free. */
const MOVES: Record<string, { steps: Step[]; slides: Step[] }> = {
  K: { steps: [...STRAIGHT, ...DIAGONAL], slides: [] },
  R: { steps: [], slides: STRAIGHT },
  B: { steps: [], slides: DIAGONAL },
  G: { steps: GOLD, slides: [] },
  S: { steps: [...DIAGONAL, [0, -1]], slides: [] },
  N: { steps: [[0.5, -1.25], [-0.5, -1.25]], slides: [] },
  L: { steps: [], slides: [[0, -1]] },
  P: { steps: [[0, -1]], slides: [] },
  "+R": { steps: DIAGONAL, slides: STRAIGHT },
  "+B": { steps: STRAIGHT, slides: DIAGONAL },
};

const signOf = ({ kind, promoted }: Omit<Piece, "side">) => (promoted ? `+${kind}` : kind);

/** Definitions that all boards of the page share. */
export function PieceDefinitions() {
  const signs = Object.keys(KANJI);
  return (
    <svg class="definitions" width="0" height="0" aria-hidden="true" focusable="false">
      <defs>
        <linearGradient id="boxwood" x1="0" y1="0" x2="1" y2="1">
          <stop offset="0" stop-color="#fbe8bd" />
          <stop offset="0.55" stop-color="#f1d295" />
          <stop offset="1" stop-color="#e0b771" />
        </linearGradient>
        <radialGradient id="check-glow">
          <stop offset="0" stop-color="#ff2a1a" stop-opacity="0.95" />
          <stop offset="0.45" stop-color="#e8240f" stop-opacity="0.6" />
          <stop offset="1" stop-color="#e8240f" stop-opacity="0" />
        </radialGradient>
        <Body id="body-up" turn="" />
        <Body id="body-down" turn="rotate(180)" />
        <g id="kanji-white-K">
          <Kanji text="王" color={INK} />
        </g>
        <g id="kanji2-white-K">
          <KanjiPair text="王将" color={INK} />
        </g>
        {signs.map((sign) => {
          const color = sign.startsWith("+") ? RED : INK;
          return [
            <g id={`kanji-${sign}`}>
              <Kanji text={KANJI[sign]!} color={color} />
            </g>,
            <g id={`kanji2-${sign}`}>
              <KanjiPair text={KANJI_PAIRS[sign]!} color={color} />
            </g>,
            <g id={`western-${sign}`}>
              <Letter sign={sign} color={color} />
            </g>,
          ];
        })}
      </defs>
    </svg>
  );
}

/** A blank piece; its shadow falls to the lower right, whichever way it points. */
function Body({ id, turn }: { id: string; turn: string }) {
  return (
    <g id={id}>
      <path d={BODY} transform={`translate(3 5) ${turn}`} fill="#2b1a05" fill-opacity="0.28" />
      <path d={BODY} transform={`translate(1 2.6) ${turn}`} fill="#9a6b30" />
      <path
        d={BODY}
        transform={turn}
        fill="url(#boxwood)"
        stroke="#9a6a2c"
        stroke-width="1"
        stroke-linejoin="round"
      />
      <path
        d={turn ? "M-36 -45H36" : "M-26-37L0-45.6L26-37"}
        fill="none"
        stroke="#fff7df"
        stroke-width="1.6"
        stroke-opacity="0.9"
      />
    </g>
  );
}

function Kanji({ text, color }: { text: string; color: string }) {
  return <path d={OUTLINES[text]} transform="translate(0 3.5) scale(.6 .66)" fill={color} />;
}

function KanjiPair({ text, color }: { text: string; color: string }) {
  const [upper, lower] = [...text];
  return (
    <>
      <path d={OUTLINES[upper!]} transform="translate(0 -15.5) scale(.43 .38)" fill={color} />
      <path d={OUTLINES[lower!]} transform="translate(0 23) scale(.47 .39)" fill={color} />
    </>
  );
}

function Letter({ sign, color }: { sign: string; color: string }) {
  const { steps, slides } = MOVES[sign] ?? { steps: GOLD, slides: [] };
  return (
    <>
      <path d={OUTLINES[sign.at(-1)!]} transform="translate(0 5) scale(.5)" fill={color} />
      {steps.map(([x, y]) => (
        <circle cx={x * 24} cy={5 + y * 31} r="3.3" fill={color} />
      ))}
      {slides.map(([x, y]) => {
        const angle = (Math.atan2(y, x) * 180) / Math.PI;
        const place = `translate(${x * 24} ${5 + y * 31}) rotate(${angle})`;
        return <path d="M5.5 0L-4-5V5Z" transform={place} fill={color} />;
      })}
    </>
  );
}

/** A piece with its middle at the origin, pointing up or (of the side above) down. */
export function PieceShape({ piece, set, up }: { piece: Piece; set: PieceSet; up: boolean }) {
  const sign = signOf(piece);
  const white = sign === "K" && piece.side === "white" && set !== "western";
  const name = white ? `${set}-white-K` : `${set}-${sign}`;
  const size = SIZES[piece.kind];
  return (
    <g transform={`scale(${size})`}>
      <use href={up ? "#body-up" : "#body-down"} />
      <use href={`#${name}`} transform={up ? undefined : "rotate(180)"} />
    </g>
  );
}

/** A piece as a picture of its own, for hands and dialogs. */
export function PieceIcon({ piece, set, up = true }: { piece: Piece; set: PieceSet; up?: boolean }) {
  return (
    <svg class="piece-icon" viewBox="-46 -52 92 106" role="img" aria-label={pieceName(piece)}>
      <PieceShape piece={piece} set={set} up={up} />
    </svg>
  );
}
