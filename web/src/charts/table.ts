/** Lines of points as the columns that uPlot draws. */
import uPlot from "uplot";

export type Points = [number, number | null][];

export interface Line {
  name: string;
  points: Points;
  /** Which of the page's colours; by default they are taken in turn. */
  color?: number;
  dash?: boolean;
  /** For shape "interval": the limits at each point. */
  limits?: [number, number][];
}

/** lines: each for itself. stacked: shares, one on top of the other. interval: with limits. */
export type Shape = "lines" | "stacked" | "interval";

type Column = (number | null | undefined)[];

export function tableOf(lines: Line[], shape: Shape): Column[] {
  if (lines.length === 0) return [[]];
  const tables = lines.map((line) => columns(line, shape));
  if (shape === "stacked") return stack(join(tables));
  return join(tables);
}

function columns({ points, limits }: Line, shape: Shape): Column[] {
  const table: Column[] = [points.map(([step]) => step), points.map(([, value]) => value)];
  if (shape === "interval" && limits) {
    table.push(limits.map(([, high]) => high), limits.map(([low]) => low));
  }
  return table;
}

function join(tables: Column[][]): Column[] {
  if (tables.length === 1) return tables[0]!;
  return uPlot.join(tables as uPlot.AlignedData[]) as Column[];
}

function stack([steps = [], ...shares]: Column[]): Column[] {
  const sums: Column[] = [steps];
  let below: Column = steps.map(() => 0);
  for (const share of shares) {
    below = share.map((value, i) => (value ?? 0) + (below[i] ?? 0));
    sums.push(below);
  }
  return sums;
}
