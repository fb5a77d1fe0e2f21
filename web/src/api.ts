/** How the server's answers are fetched; what is in them is in schema.ts. */

import type { Position, SeriesAnswer } from "./schema";

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

async function request<T>(path: string, init?: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(`api/${path}`, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "Keisei does not answer. Is `keisei serve` still running?");
  }
  if (response.ok) return (await response.json()) as T;
  const answer = await response.json().catch(() => null);
  const detail = typeof answer?.detail === "string" ? answer.detail : response.statusText;
  throw new ApiError(response.status, detail || `the server said ${response.status}`);
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

/** A path with its parts escaped: `path("runs", name, "games")`. */
export function path(...parts: (string | number)[]): string {
  return parts.map((part) => encodeURIComponent(String(part))).join("/");
}
