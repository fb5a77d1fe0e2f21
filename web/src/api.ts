/** How the server's answers are fetched; what is in them is in schema.ts. */

import type { Kept, Position, SeriesAnswer } from "./schema";

export type * from "./schema";
export type Side = Position["turn"];
export type Series = SeriesAnswer["series"];

/** What the server said was wrong, in a sentence for people. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const SILENT = "Keisei does not answer. Is `keisei serve` still running?";

export async function request<T>(path: string, init?: RequestInit): Promise<T> {
  const response = await answer(path, init);
  return (await response.json()) as T;
}

async function answer(path: string, init?: RequestInit): Promise<Response> {
  const response = await fetch(`api/${path}`, init).catch(silent);
  if (response.ok) return response;
  const said = await response.json().catch(() => null);
  const detail = typeof said?.detail === "string" ? said.detail : response.statusText;
  throw new ApiError(response.status, detail || `the server said ${response.status}`);
}

function silent(error: unknown): never {
  throw error instanceof DOMException && error.name === "AbortError" ? error : new ApiError(0, SILENT);
}

export function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return request<T>(path, { signal });
}

export function post<T>(path: string, body: object = {}): Promise<T> {
  return request<T>(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

/** A game record, as it is, to keep. */
export function bring(record: Blob): Promise<Kept> {
  return request<Kept>("kept", { method: "POST", body: record, headers: { "Content-Type": "application/octet-stream" } });
}

export async function remove(path: string): Promise<void> {
  await answer(path, { method: "DELETE" });
}

/** Hears the events of a stream until it ends; aborting it ends the work behind it, too. */
export async function listen(
  path: string,
  handlers: Record<string, (data: never) => void>,
  signal: AbortSignal,
): Promise<void> {
  const response = await answer(path, { signal });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read().catch(silent);
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop()!;
    for (const event of events) {
      const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(event) ?? [];
      if (name) handlers[name]?.(JSON.parse(data!) as never);
    }
  }
}

/** A path with its parts escaped: `path("runs", name, "games")`. */
export function path(...parts: (string | number)[]): string {
  return parts.map((part) => encodeURIComponent(String(part))).join("/");
}
