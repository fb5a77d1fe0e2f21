/** One metric of several runs in one chart. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, path, type RunDetail, type RunRow, type SeriesAnswer } from "../api";
import { Chart } from "../charts/chart";
import type { Points } from "../charts/table";
import { number, percent } from "../format";
import { link, replace } from "../router";
import { isShare } from "./metrics";

const PREFERRED = ["wins against random", "return", "entropy"];

export function Compare({ runs, section, query }: { runs: RunRow[]; section: string; query: URLSearchParams }) {
  const names = useNames(runs);
  const metric = query.get("metric") ?? PREFERRED.find((name) => names.includes(name)) ?? names[0] ?? null;
  const curves = useCurves(runs, metric);
  const lines = useMemo(
    () => runs.map((run) => ({ name: run.name, points: curves[run.name] ?? [] })),
    [runs.map((run) => run.name).join("\n"), curves],
  );
  if (runs.length === 0) return <p class="hint">Tick runs to compare their curves.</p>;
  const share = metric !== null && isShare(metric);
  return (
    <section class="card compare-card">
      <div class="card-head">
        <h2>Compare</h2>
        <label class="inline">
          <span>Metric</span>
          <select
            value={metric ?? ""}
            onChange={(event) =>
              replace(link([section], { ...Object.fromEntries(query), metric: event.currentTarget.value }))
            }
          >
            {names.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      </div>
      {metric && (
        <Chart
          key={metric}
          title={metric}
          lines={lines}
          format={share ? percent : number}
          range={share ? [0, 1] : undefined}
          wide
        />
      )}
    </section>
  );
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

/** The curves, fetched again when a run got on. */
function useCurves(runs: RunRow[], metric: string | null): Record<string, Points> {
  const [curves, setCurves] = useState<Record<string, Points>>({});
  const state = runs.map((run) => `${run.name} ${run.steps}`).join("\n");
  useEffect(() => setCurves({}), [metric]);
  useEffect(() => {
    if (metric === null) return;
    const abort = new AbortController();
    for (const { name } of runs) {
      const address = `${path("runs", name, "series")}?name=${encodeURIComponent(metric)}&points=400`;
      get<SeriesAnswer>(address, abort.signal).then(
        ({ series }) => setCurves((old) => ({ ...old, [name]: series[metric] ?? [] })),
        () => {},
      );
    }
    return () => abort.abort();
  }, [state, metric]);
  return curves;
}
