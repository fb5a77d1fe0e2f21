/** A run as it is now: its numbers, its curves and its games in play, kept up to date. */
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, get, type LiveGame, type LiveUpdate, path, type RunDetail, type RunUpdate, type Series, type SeriesAnswer } from "../api";
import { type Connection, useEvents } from "../loading";

const POINTS = 300;
const REFRESH_MS = 60_000; // the stream may skip points of a fast run; the series has them

export interface RunState {
  run: RunDetail | null;
  series: Series;
  live: LiveGame[];
  error: ApiError | null;
  connection: Connection;
  reload: () => void;
}

export function useRun(name: string): RunState {
  const [run, setRun] = useState<RunDetail | null>(null);
  const [series, setSeries] = useState<Series>({});
  const [live, setLive] = useState<LiveGame[]>([]);
  const [error, setError] = useState<ApiError | null>(null);
  const [turn, setTurn] = useState(0);
  const known = useRef({ names: "", steps: 0, at: 0 });
  const reload = () => setTurn((n) => n + 1);

  useEffect(() => {
    const abort = new AbortController();
    load(name, abort.signal).then(
      ({ run, series }) => {
        known.current = { names: run.names.join("\n"), steps: run.steps, at: Date.now() };
        setRun(run);
        setSeries(series);
        setError(null);
      },
      (problem) => {
        if (!abort.signal.aborted) setError(problem);
      },
    );
    return () => abort.abort();
  }, [name, turn]);

  const opened = useRef(false);
  const connection = useEvents(
    error ? null : `${path("runs", name)}/stream`,
    {
      update: (update: RunUpdate) => {
        const names = Object.keys(update.latest).sort().join("\n");
        const back = update.row.steps < known.current.steps; // resumed from an earlier checkpoint
        const old = Date.now() - known.current.at > REFRESH_MS;
        if (known.current.at && (back || old || names !== known.current.names)) {
          known.current.at = 0; // until the answer is here
          reload();
        }
        known.current.steps = update.row.steps;
        setRun((old) => old && { ...old, ...update.row, latest: update.latest, workers: update.workers, events: update.events });
        setSeries((old) => extended(old, update));
      },
      live: (data: LiveUpdate) => setLive(data.games),
    },
    () => {
      if (opened.current) reload(); // what came while the stream was closed
      opened.current = true;
    },
  );
  return { run, series, live, error, connection, reload };
}

async function load(name: string, signal: AbortSignal): Promise<{ run: RunDetail; series: Series }> {
  const run = await get<RunDetail>(path("runs", name), signal);
  if (run.names.length === 0) return { run, series: {} };
  const query = new URLSearchParams(run.names.map((metric) => ["name", metric]));
  query.set("points", String(POINTS));
  const { series } = await get<SeriesAnswer>(`${path("runs", name, "series")}?${query}`, signal);
  return { run, series };
}

/** The curves with the newest values at their ends; those without news stay the same object. */
function extended(series: Series, { latest, latest_steps }: RunUpdate): Series {
  let changed: Series | null = null;
  for (const [name, points] of Object.entries(series)) {
    const step = latest_steps[name];
    if (step === undefined || step <= (points.at(-1)?.[0] ?? -1)) continue;
    changed ??= { ...series };
    changed[name] = [...points, [step, latest[name] ?? null]];
  }
  return changed ?? series;
}
