/** A chart of some metrics over steps, or over time. It is drawn by uPlot, only when it is seen and has changed. */
import { useEffect, useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import { number, percent, short, tick } from "../format";
import { useDark } from "../store";
import { type Line, type Shape, tableOf } from "./table";

interface ChartProps {
  title: string;
  lines: Line[];
  shape?: Shape;
  format?: (value: number | null) => string;
  /** The least range of the y axis. */
  range?: [number | null, number | null];
  /** Charts with the same key show their values at the same step. */
  sync?: string;
  hint?: string;
  wide?: boolean;
  /** A logarithmic y axis; what is not above 0 is left out. */
  log?: boolean;
  formatX?: (value: number) => string;
}

export function Chart(props: ChartProps) {
  const { title, lines, shape = "lines", format = number, range, sync, hint, wide, log, formatX = stepTick } = props;
  const dark = useDark();
  const holder = useRef<HTMLDivElement>(null);
  const legend = useRef<HTMLUListElement>(null);
  const plot = useRef<uPlot | null>(null);
  const data = useMemo(() => tableOf(lines, shape), lines.map((line) => line.points).concat([]));
  const newest = useRef(data);
  const names = lines.map((line) => line.name).join("\n");

  const showValues = (chart: uPlot | null) => {
    const index = chart?.cursor.idx ?? null;
    legend.current?.querySelectorAll("b").forEach((value, i) => {
      const line = lines[i];
      if (!line) return;
      const step = index === null ? null : (newest.current[0]?.[index] ?? null);
      value.textContent = format(step === null ? lastOf(line) : valueAt(line, step));
    });
  };

  useEffect(() => {
    const element = holder.current;
    if (!element) return;
    const make = () => {
      const width = element.clientWidth;
      if (!width || plot.current) return;
      const options = optionsOf({ width, height: element.clientHeight, lines, shape, format, range, sync, log, formatX });
      options.hooks = { setCursor: [showValues] };
      plot.current = new uPlot(options, newest.current as uPlot.AlignedData, element);
    };
    const seen = new IntersectionObserver(([entry]) => {
      element.dataset.seen = String(entry!.isIntersecting);
      if (!entry!.isIntersecting) return;
      if (plot.current) plot.current.setData(newest.current as uPlot.AlignedData);
      else make();
    }, { rootMargin: "100px" });
    const resized = new ResizeObserver(() => {
      const size = { width: element.clientWidth, height: element.clientHeight };
      if (plot.current && (plot.current.width !== size.width || plot.current.height !== size.height)) {
        plot.current.setSize(size);
      }
    });
    seen.observe(element);
    resized.observe(element);
    return () => {
      seen.disconnect();
      resized.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [dark, names, shape, sync, log, formatX]);

  useEffect(() => {
    newest.current = data;
    showValues(plot.current);
    if (plot.current && holder.current?.dataset.seen === "true") {
      plot.current.setData(data as uPlot.AlignedData);
    }
  }, [data, dark]);

  const latest = lines.map((line) => `${line.name} ${format(lastOf(line))}`).join(", ");
  return (
    <figure class={`chart${wide ? " wide" : ""}`} data-chart={title} data-points={data[0]?.length ?? 0}>
      <figcaption>
        <h3 title={hint}>{title}</h3>
        <ul ref={legend} class={`legend${lines.length > 1 || shape === "interval" ? "" : " single"}`}>
          {lines.map((line, i) => (
            <li key={line.name} class={`series-${line.color ?? i + 1}`}>
              <span class="name">{line.name}</span> <b />
            </li>
          ))}
        </ul>
      </figcaption>
      <div class="plot" ref={holder} role="img" aria-label={`${title}: ${latest}`} />
    </figure>
  );
}

function lastOf(line: Line): number | null {
  return line.points.at(-1)?.[1] ?? null;
}

function valueAt(line: Line, step: number): number | null {
  for (let i = line.points.length - 1; i >= 0; i--) {
    if (line.points[i]![0] <= step) return line.points[i]![1];
  }
  return null;
}

interface Drawing {
  width: number;
  height: number;
  lines: Line[];
  shape: Shape;
  format: (value: number | null) => string;
  range?: [number | null, number | null];
  sync?: string;
  log?: boolean;
  formatX: (value: number) => string;
}

function stepTick(step: number): string {
  return step < 100 ? tick(step) : short(step);
}

function optionsOf({ width, height, lines, shape, format, range, sync, log, formatX }: Drawing): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: color("--muted"),
    font: "11px system-ui, sans-serif",
    grid: { stroke: color("--grid"), width: 1 },
    ticks: { show: false },
  };
  const few = (line: Line) => line.points.length < 40;
  const colorOf = (line: Line, i: number) => color(`--series-${line.color ?? i + 1}`);
  let series: uPlot.Series[] = lines.map((line, i) => ({
    label: line.name,
    stroke: colorOf(line, i),
    width: shape === "stacked" ? 1 : 1.75,
    dash: line.dash ? [5, 5] : undefined,
    fill: shape === "lines" && lines.length === 1 ? `${colorOf(line, i)}1c` : undefined,
    points: { show: shape !== "stacked" && few(line), size: 5, fill: colorOf(line, i) },
  }));
  const bands: uPlot.Band[] = [];
  if (shape === "stacked") {
    lines.forEach((line, i) => {
      if (i === 0) series[0]!.fill = `${colorOf(line, 0)}b0`;
      else bands.push({ series: [i + 1, i], fill: `${colorOf(line, i)}b0` });
    });
  } else if (shape === "interval") {
    // Each line has its limits behind it.
    const limits = ["high", "low"].map((label) => ({ label, stroke: "transparent", width: 0, points: { show: false } }));
    series = series.flatMap((line) => [line, ...limits]);
    lines.forEach((line, i) => bands.push({ series: [3 * i + 2, 3 * i + 3], fill: `${colorOf(line, i)}33` }));
  }
  return {
    width,
    height,
    padding: [6, 8, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { size: 7 },
      drag: { x: true, y: false },
      sync: sync ? { key: sync, setSeries: false } : undefined,
    },
    scales: {
      x: { time: false },
      y: log ? { distr: 3 } : { range: (_, low, high) => yRange(low, high, range) },
    },
    axes: [
      { ...axis, size: 26, gap: 4, space: 70, values: (_, steps) => steps.map(formatX) },
      { ...axis, size: 46, gap: 4, space: 34, values: (_, values) => values.map((value) => (value === null ? "" : format === percent ? percent(value) : tick(value))) },
    ],
    series: [{}, ...series],
    bands,
  };
}

function yRange(low: number | null, high: number | null, least: ChartProps["range"]): [number, number] {
  let [from, to] = [low ?? 0, high ?? 1];
  const [floor, ceiling] = least ?? [null, null];
  if (floor !== null) from = Math.min(from, floor);
  if (ceiling !== null) to = Math.max(to, ceiling);
  if (from === to) return [from - Math.abs(from || 1) * 0.1, to + Math.abs(to || 1) * 0.1];
  const space = (to - from) * 0.06;
  return [from === floor ? from : from - space, to === ceiling ? to : to + space];
}
