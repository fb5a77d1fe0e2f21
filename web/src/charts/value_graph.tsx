/** Who stands better, move by move: above the middle Black, below it White. */
import { memo } from "../memo";
import { markOf } from "../ui/moves";

interface Props {
  values: (number | null)[];
  ply?: number;
  onChoose?: (ply: number) => void;
  /** As many plies as the graph is wide at least. */
  least?: number;
  /** What each move gave away: bad moves get a dot. */
  losses?: (number | null)[];
}

const NONE: null[] = [];

export const ValueGraph = memo(function ValueGraph({ values, ply, onChoose, least = 40, losses = NONE }: Props) {
  const span = Math.max(values.length - 1, least);
  const known = values.flatMap((value, i) => (value === null ? [] : [{ x: i, y: -value }]));
  const area = (limit: (y: number) => number) => {
    if (known.length === 0) return "";
    const points = known.map(({ x, y }) => `${x} ${limit(y).toFixed(3)}`).join("L");
    return `M${known[0]!.x} 0L${points}L${known.at(-1)!.x} 0Z`;
  };
  const line = known.length ? `M${known.map(({ x, y }) => `${x} ${y.toFixed(3)}`).join("L")}` : "";
  const choose = (event: PointerEvent) => {
    if (!onChoose || (event.type === "pointermove" && !(event.buttons & 1))) return;
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    onChoose(Math.max(0, Math.min(values.length - 1, Math.round(share * span))));
  };
  return (
    <svg
      class={`value-graph${onChoose ? " choosable" : ""}`}
      viewBox={`0 -1.05 ${span} 2.1`}
      preserveAspectRatio="none"
      role="img"
      aria-label="Chance to win over the game: above the middle Black stands better"
      onPointerDown={choose}
      onPointerMove={choose}
    >
      <path class="for-black" d={area((y) => Math.min(y, 0))} />
      <path class="for-white" d={area((y) => Math.max(y, 0))} />
      <line class="middle" x1="0" x2={span} y1="0" y2="0" />
      <path class="line" d={line} />
      {losses.map((loss, i) => {
        const mark = markOf(loss);
        const value = values[i + 1];
        return mark && value != null && <path key={i} class={`dot ${mark}`} d={`M${i + 1} ${-value}h0`} />;
      })}
      {ply !== undefined && <line class="now" x1={ply} x2={ply} y1="-1.05" y2="1.05" />}
    </svg>
  );
});
