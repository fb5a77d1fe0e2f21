/** Metrics of several runs, one chart for each: smoothed, logarithmic, over steps or time, and as CSV. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, path, type RunDetail, type RunRow, type Series, type SeriesAnswer } from "../api";
import { Chart } from "../charts/chart";
import type { Points } from "../charts/table";
import { duration, number, percent } from "../format";
import { link, replace } from "../router";
import { Button } from "../ui/parts";
import { isShare } from "./metrics";

const PREFERRED = ["wins against random", "return", "entropy"];

interface Props {
  runs: RunRow[];
  section: string;
  query: URLSearchParams;
}

export function Compare({ runs, section, query }: Props) {
  const names = useNames(runs);
  const first = PREFERRED.find((name) => names.includes(name)) ?? names[0];
  const metrics = (query.get("metric") ?? first ?? "").split("|").filter(Boolean);
  const [byTime, log, smoothing] = [query.get("axis") === "time", query.has("log"), Number(query.get("smooth") ?? 0) || 0];
  const curves = useCurves(runs, metrics, byTime);
  if (runs.length === 0) return <p class="hint">Tick runs to compare their curves.</p>;
  const set = (change: Record<string, string>) => {
    const next = Object.entries({ ...Object.fromEntries(query), ...change }).filter(([, value]) => value);
    replace(link([section], Object.fromEntries(next)));
  };
  const others = names.filter((name) => !metrics.includes(name));
  return (
    <section class="card compare-card">
      <div class="card-head">
        <h2>Compare</h2>
        <div class="filters">
          <label class="inline">
            <span>Metric</span>
            <select value={metrics[0] ?? ""} onChange={(event) => set({ metric: [event.currentTarget.value, ...metrics.slice(1)].join("|") })}>
              {names.filter((name) => !metrics.slice(1).includes(name)).map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
          <label class="inline">
            <span>And</span>
            <select value="" onChange={(event) => set({ metric: [...metrics, event.currentTarget.value].join("|") })}>
              <option value="">another</option>
              {others.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
          <label class="inline">
            <span>Over</span>
            <select value={byTime ? "time" : ""} onChange={(event) => set({ axis: event.currentTarget.value })}>
              <option value="">steps</option>
              <option value="time">time</option>
            </select>
          </label>
          <label class="inline">
            <span>Smoothing</span>
            <input
              type="range"
              min={0}
              max={0.95}
              step={0.05}
              value={smoothing}
              onInput={(event) => set({ smooth: event.currentTarget.value === "0" ? "" : event.currentTarget.value })}
            />
          </label>
          <label class="inline">
            <input type="checkbox" checked={log} onChange={() => set({ log: log ? "" : "1" })} />
            <span>Logarithmic</span>
          </label>
          <Button onClick={() => download(curves, metrics, byTime)}>CSV</Button>
        </div>
      </div>
      {metrics.map((metric, i) => (
        <div key={metric} class="compared">
          <MetricChart runs={runs} metric={metric} curves={curves} smoothing={smoothing} log={log} byTime={byTime} titled={metrics.length > 1} />
          {i > 0 && (
            <Button kind="quiet" onClick={() => set({ metric: metrics.filter((other) => other !== metric).join("|") })}>
              Remove {metric}
            </Button>
          )}
        </div>
      ))}
    </section>
  );
}

interface ChartOf {
  runs: RunRow[];
  metric: string;
  curves: Record<string, Series>;
  smoothing: number;
  log: boolean;
  byTime: boolean;
  titled: boolean;
}

function MetricChart({ runs, metric, curves, smoothing, log, byTime, titled }: ChartOf) {
  const lines = useMemo(
    () =>
      runs.map((run) => {
        const points = smooth(curves[run.name]?.[metric] ?? [], smoothing);
        return { name: run.name, points: log ? points.map(([x, y]): Points[0] => [x, y !== null && y > 0 ? y : null]) : points };
      }),
    [runs.map((run) => run.name).join("\n"), curves, metric, smoothing, log],
  );
  const share = isShare(metric);
  return (
    <div class={titled ? "titled" : undefined}>
      <Chart
        title={metric}
        lines={lines}
        format={share ? percent : number}
        range={share ? [0, 1] : undefined}
        log={log}
        formatX={byTime ? duration : undefined}
        wide
      />
    </div>
  );
}

/** An exponential mean; the larger the share of what was before, the smoother. */
function smooth(points: Points, share: number): Points {
  let mean: number | null = null;
  return points.map(([x, y]) => {
    if (y === null) return [x, y];
    mean = mean === null ? y : share * mean + (1 - share) * y;
    return [x, mean];
  });
}

/** What the charts show, not smoothed, as a file. */
function download(curves: Record<string, Series>, metrics: string[], byTime: boolean) {
  const quote = (text: string) => `"${text.replaceAll('"', '""')}"`;
  const rows = [["run", "metric", byTime ? "seconds" : "step", "value"].join(",")];
  for (const [run, series] of Object.entries(curves)) {
    for (const metric of metrics) {
      for (const [x, y] of series[metric] ?? []) rows.push([quote(run), quote(metric), x, y ?? ""].join(","));
    }
  }
  const address = URL.createObjectURL(new Blob([rows.join("\n") + "\n"], { type: "text/csv" }));
  const anchor = Object.assign(document.createElement("a"), { href: address, download: "keisei.csv" });
  anchor.click();
  URL.revokeObjectURL(address);
}

function useNames(runs: RunRow[]): string[] {
  const [names, setNames] = useState<Record<string, string[]>>({});
  const wanted = runs.map((run) => run.name).join("\n");
  useEffect(() => {
    for (const { name } of runs) {
      if (names[name]) continue;
      get<RunDetail>(path("runs", name)).then(
        (run) => setNames((old) => ({ ...old, [name]: run.names })),
        () => {}, // its line in the table says what is wrong
      );
    }
  }, [wanted]);
  return [...new Set(runs.flatMap((run) => names[run.name] ?? []))].sort();
}

/** The curves by run and metric, fetched again when a run got on. */
function useCurves(runs: RunRow[], metrics: string[], byTime: boolean): Record<string, Series> {
  const [curves, setCurves] = useState<Record<string, Series>>({});
  const state = runs.map((run) => `${run.name} ${run.steps}`).join("\n");
  const wanted = metrics.map((metric) => `name=${encodeURIComponent(metric)}`).join("&");
  useEffect(() => setCurves({}), [wanted, byTime]);
  useEffect(() => {
    if (!wanted) return;
    const abort = new AbortController();
    for (const { name } of runs) {
      const address = `${path("runs", name, "series")}?${wanted}&points=400&axis=${byTime ? "time" : "step"}`;
      get<SeriesAnswer>(address, abort.signal).then(
        ({ series }) => setCurves((old) => ({ ...old, [name]: series })),
        () => {},
      );
    }
    return () => abort.abort();
  }, [state, wanted, byTime]);
  return curves;
}
