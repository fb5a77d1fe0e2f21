/** Hooks that fetch: once (`useFetch`), and live (`useEvents`). */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, get } from "./api";

export interface Loaded<T> {
  data: T | null;
  error: ApiError | null;
  loading: boolean;
  reload: () => void;
}

/** The answer at `path` (null: nothing to fetch yet); the old one stays until the new one is here. */
export function useFetch<T>(path: string | null): Loaded<T> {
  const [state, setState] = useState<{ data: T | null; error: ApiError | null; of: string | null }>(
    { data: null, error: null, of: null },
  );
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (path === null) return;
    const abort = new AbortController();
    get<T>(path, abort.signal).then(
      (data) => setState({ data, error: null, of: path }),
      (error) => {
        if (!abort.signal.aborted) setState((old) => ({ ...old, error, of: path }));
      },
    );
    return () => abort.abort();
  }, [path, turn]);
  const reload = useCallback(() => setTurn((n) => n + 1), []);
  return { data: state.data, error: state.error, loading: path !== state.of, reload };
}

export type Connection = "connecting" | "live" | "lost" | "paused";

const RETRY_MS = [1000, 2000, 4000, 8000, 15000];

/** Listens to a stream while the tab is seen, and connects anew when it broke.
 *
 * `onOpen` is called at each connection: what happened in between may have been missed.
 */
export function useEvents(
  path: string | null,
  handlers: Record<string, (data: never) => void>,
  onOpen?: () => void,
): Connection {
  const [state, setState] = useState<Connection>("connecting");
  const latest = useRef({ handlers, onOpen });
  latest.current = { handlers, onOpen };
  const names = Object.keys(handlers).join(" ");

  useEffect(() => {
    if (path === null) return;
    let source: EventSource | null = null;
    let timer = 0;
    let failures = 0;

    const stop = () => {
      clearTimeout(timer);
      source?.close();
      source = null;
    };
    const start = () => {
      stop();
      setState("connecting");
      source = new EventSource(`api/${path}`);
      source.onopen = () => {
        failures = 0;
        setState("live");
        latest.current.onOpen?.();
      };
      source.onerror = () => {
        stop();
        setState("lost");
        timer = window.setTimeout(start, RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)]);
      };
      for (const name of names.split(" ")) {
        source.addEventListener(name, (event) =>
          latest.current.handlers[name]?.(JSON.parse((event as MessageEvent).data) as never),
        );
      }
    };
    const seen = () => {
      if (document.hidden) {
        stop();
        setState("paused");
      } else if (source === null) start();
    };
    seen();
    document.addEventListener("visibilitychange", seen);
    return () => {
      document.removeEventListener("visibilitychange", seen);
      stop();
    };
  }, [path, names]);
  return state;
}
