/** The server's answers, as in keisei/web, and how they are fetched. */

export type Side = "black" | "white";

export interface Position {
  sfen: string;
  turn: Side;
  check: boolean;
  last: string | null;
}

export interface Move {
  usi: string;
  western: string;
  japanese: string;
}

export interface TopMove {
  move: string;
  western: string;
  japanese: string;
  probability: number;
  value?: number | null;
}

export interface RunRow {
  name: string;
  kind: "shogi" | "world";
  state: "training" | "stopped" | "finished" | "broken";
  error: string | null;
  world: string | null;
  steps: number;
  total_steps: number | null;
  steps_per_s: number | null;
  games: number | null;
  elo: { rating: number; low: number; high: number } | null;
  return: number | null;
  updated: number | null;
  started?: number | null;
}

export interface WorkerRow {
  worker: number;
  state: string;
  busy: number | null;
  waiting: number | null;
  syncing: number | null;
  restarts: number;
  lag: number | null;
  steps_per_s: number | null;
  memory_mb: number | null;
  node: string | null;
}

export interface RunEvent {
  time: number;
  level: string;
  message: string;
}

export interface LadderPlayer {
  name: string;
  rating: number;
  low: number;
  high: number;
  games: number;
  steps: number | null;
  cpu_hours: number | null;
}

export type Numbers = Record<string, number | null>;

export interface Run extends RunRow {
  config: string;
  names: string[];
  latest: Numbers;
  latest_steps?: Record<string, number>;
  checkpoints: { file: string; steps: number }[];
  workers: WorkerRow[];
  events: RunEvent[];
  ladder: { players: LadderPlayer[] } | null;
  random_return: number[] | null;
  agents: number | null;
}

export interface Update {
  row: RunRow;
  latest: Numbers;
  latest_steps?: Record<string, number>;
  workers: WorkerRow[];
  events: RunEvent[];
}

export interface LiveGame {
  game: number;
  position: Position;
  move_number: number;
  top: TopMove[];
  values: [number, number | null][];
}

export type Series = Record<string, [number, number | null][]>;

export interface GameRow {
  id: number;
  step: number;
  time: number;
  kind: string;
  black: string;
  white: string;
  winner: Side | null;
  reason: string;
  length: number;
  has_record: boolean;
}

export interface GameList {
  total: number;
  games: GameRow[];
  reasons?: string[];
}

export interface RecordedGame extends GameRow {
  positions: Position[];
  moves: Move[];
  values: (number | null)[];
}

export interface Player {
  id: string;
  label: string;
  steps: number | null;
}

export interface PlayedGame {
  id: string;
  player: string;
  label: string;
  side: Side;
  nodes: number;
  position: Position;
  legal: string[];
  moves: Move[];
  positions: Position[];
  values: (number | null)[];
  your_turn: boolean;
  result: { winner: Side | null; reason: string; text: string } | null;
  clock: { black: number; white: number; byoyomi: number; running: Side | null } | null;
}

export interface Info {
  version: string;
  handicaps: { name: string; label: string; sfen: string }[];
}

export interface Episode {
  height: number;
  width: number;
  legend: { name: string; color: string; symbol: string; shape: "square" | "circle" | "diamond" }[];
  agents: number;
  agent_colors: string[];
  frames: {
    ground?: number[][];
    cells: number[][];
    agents: [number, number, number | null][];
    rewards: number[];
  }[];
  returns: number[];
}

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
