/** What the server sends and takes. Made from keisei/web/schema.py by `make web`: do not edit. */

/** A line that begins with one of the best moves; `value` and `mate` are Black's. */
export interface AnalysedLine {
  value: number;
  mate: number | null;
  moves: Array<MoveText>;
}

/** What is known of a position so far: the data of an `analysis` event.

The best line is the first. It is `over` when a mate is proven, or the tree as large as it may
become. */
export interface AnalysisUpdate {
  nodes: number;
  over: boolean;
  lines: Array<AnalysedLine>;
}

/** A checkpoint file of a run. */
export interface Checkpoint {
  file: string;
  steps: number;
}

/** Each side's main time, and what the player to move has left, including byoyomi; seconds. */
export interface ClockNow {
  black: number;
  white: number;
  byoyomi: number;
  running: "black" | "white" | null;
  left: number | null;
}

/** Seconds for the whole game, then for each move. */
export interface ClockSettings {
  main?: number;
  byoyomi?: number;
}

/** What to say at a node; nothing takes a comment away. */
export interface CommentRequest {
  node: number;
  text: string;
}

/** A rating on the yardstick with its 95 % interval, of a checkpoint and a way of playing. */
export interface Elo {
  rating: number;
  low: number;
  high: number;
  steps: number | null;
  nodes: number | null;
}

/** An episode of a world. */
export interface Episode {
  height: number;
  width: number;
  legend: Array<LegendEntry>;
  agents: number;
  agent_colors: Array<string>;
  turns: number;
  frames: Array<Frame>;
  returns: Array<number>;
}

/** A turn: the lowest and the topmost thing in each cell, the agents, and their rewards. */
export interface Frame {
  ground: Array<Array<number>>;
  cells: Array<Array<number>>;
  agents: Array<[number, number, string | null]>;
  rewards: Array<number>;
}

/** A game with all its positions; values are Black's, one for each position. */
export interface GameDetail {
  id: number;
  step: number;
  time: number;
  kind: string;
  black: string;
  white: string;
  winner: "black" | "white" | null;
  reason: string;
  length: number;
  has_record: boolean;
  positions: Array<Position>;
  moves: Array<MoveText>;
  values: Array<number | null>;
}

/** Some games of a run, newest first; `reasons` are how any of its games ended. */
export interface GameList {
  total: number;
  games: Array<GameRow>;
  reasons: Array<string>;
}

/** A game of a run. */
export interface GameRow {
  id: number;
  step: number;
  time: number;
  kind: string;
  black: string;
  white: string;
  winner: "black" | "white" | null;
  reason: string;
  length: number;
  has_record: boolean;
}

/** A start position with fewer pieces for White, who moves first. */
export interface Handicap {
  name: string;
  label: string;
  sfen: string;
}

/** What the agent would play in the human's place; `value` is Black's. */
export interface Hint {
  top: Array<TopMove>;
  value: number | null;
}

/** What this server is. */
export interface Info {
  version: string;
  handicaps: Array<Handicap>;
  token_required: boolean;
}

/** Moves from the start of a kept game to a position. */
export interface JudgeRequest {
  moves: Array<string>;
}

/** What the search found in the position after `ply` moves; `value` and `mate` are Black's.

`loss` is how much of the mover's chance to win the move that led here gave away, from 0 to 1. */
export interface Judged {
  ply: number;
  value: number;
  mate: number | null;
  best: string | null;
  line: Array<MoveText>;
  top: Array<TopMove>;
  loss: number | null;
}

/** What the search says of a position, and of the one before the last move to it. */
export interface Judgement {
  move: MoveText | null;
  before: Judged | null;
  judged: Judged;
}

/** The number of a kept game. */
export interface Kept {
  id: number;
}

/** A kept game with all its positions; `comments` are by node of the main line. */
export interface KeptGame {
  id: number;
  kind: "played" | "imported" | "recorded";
  time: number;
  black: string;
  white: string;
  side: "black" | "white" | null;
  winner: "black" | "white" | null;
  reason: string | null;
  length: number;
  positions: Array<Position>;
  moves: Array<MoveText>;
  variations: Array<VariationNode>;
  comments: Record<string, string>;
}

/** Some of the kept games, newest first; `problem` is why they are not kept for good. */
export interface KeptList {
  total: number;
  games: Array<KeptRow>;
  problem: string | null;
}

/** A kept game in the list; `side` is the human's, `reason` how it ended, if it did. */
export interface KeptRow {
  id: number;
  kind: "played" | "imported" | "recorded";
  time: number;
  black: string;
  white: string;
  side: "black" | "white" | null;
  winner: "black" | "white" | null;
  reason: string | null;
  length: number;
}

/** The ratings of `keisei ladder`, strongest first, or why they cannot be read. */
export interface Ladder {
  players: Array<LadderPlayer>;
  error: string | null;
}

/** A player of the run's ladder: a checkpoint, or a reference. */
export interface LadderPlayer {
  rating: number;
  low: number;
  high: number;
  steps: number | null;
  nodes: number | null;
  name: string;
  games: number;
  cpu_hours: number | null;
}

/** What a number in a frame's cells means. */
export interface LegendEntry {
  name: string;
  color: string;
  symbol: string;
  shape: "square" | "circle" | "diamond";
  layer: number;
}

/** A game in progress; values are Black's, from -1 to 1, by number of moves. */
export interface LiveGame {
  game: number;
  position: Position;
  move_number: number;
  top: Array<TopMove>;
  values: Array<[number, number]>;
}

/** The games in progress: the data of a `live` event. */
export interface LiveUpdate {
  games: Array<LiveGame>;
}

/** The human's move. */
export interface MoveRequest {
  move: string;
}

/** A move as programs and as people write it. */
export interface MoveText {
  usi: string;
  western: string;
  japanese: string;
}

/** A game to begin; `start` is "startpos", a handicap's name or an SFEN. */
export interface NewGame {
  player: string;
  side?: "black" | "white";
  nodes?: number;
  start?: string;
  clock?: ClockSettings | null;
}

/** An empty body. */
export interface NoBody {
}

/** A game against a human. */
export interface PlayedGame {
  id: string;
  player: string;
  label: string;
  elo: Elo | null;
  side: "black" | "white";
  nodes: number;
  position: Position;
  legal: Array<string>;
  moves: Array<MoveText>;
  positions: Array<Position>;
  values: Array<number | null>;
  your_turn: boolean;
  result: Result | null;
  clock: ClockNow | null;
  kept: number | null;
}

/** All players to play against. */
export interface PlayerList {
  players: Array<PlayerRow>;
}

/** A player to play against: a level, which has `nodes`, or a run's checkpoint with `steps`. */
export interface PlayerRow {
  id: string;
  label: string;
  steps: number | null;
  nodes: number | null;
  elo: Elo | null;
}

/** Everything needed to draw a board. */
export interface Position {
  sfen: string;
  turn: "black" | "white";
  check: boolean;
  last: string | null;
}

/** A position and its legal moves. */
export interface PositionAnswer {
  position: Position;
  legal: Array<string>;
}

/** Why a request was refused or failed, in one sentence. */
export interface Problem {
  detail: string;
}

/** How a game ended; `text` is for the human. */
export interface Result {
  winner: "black" | "white" | null;
  reason: string;
  text: string;
}

/** What is new in a review: the data of a `review` event.

When all positions are judged, those around mistakes are judged again, and `total` grows.
`values` are what the network says at a glance, Black's, one for each position; only at first. */
export interface ReviewUpdate {
  done: number;
  total: number;
  judged: Array<Judged>;
  values: Array<number | null>;
}

/** A run with everything but its curves and games. */
export interface RunDetail {
  name: string;
  kind: "shogi" | "world";
  state: "training" | "stopped" | "finished" | "broken";
  error: string | null;
  world: string | null;
  steps: number;
  total_steps: number | null;
  steps_per_s: number | null;
  games: number | null;
  elo: Array<Elo>;
  return: number | null;
  started: number | null;
  updated: number | null;
  config: string;
  names: Array<string>;
  latest: Record<string, number | null>;
  latest_steps: Record<string, number>;
  checkpoints: Array<Checkpoint>;
  workers: Array<WorkerRow>;
  events: Array<RunEvent>;
  ladder: Ladder | null;
  random_return: Array<number> | null;
  agents: number | null;
}

/** Something that happened in a run. */
export interface RunEvent {
  time: number;
  level: string;
  message: string;
}

/** All runs of the folder. */
export interface RunList {
  runs: Array<RunRow>;
}

/** A run in the list. */
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
  elo: Array<Elo>;
  return: number | null;
  started: number | null;
  updated: number | null;
}

/** What is new in a run: the data of an `update` event. */
export interface RunUpdate {
  row: RunRow;
  latest: Record<string, number | null>;
  latest_steps: Record<string, number>;
  workers: Array<WorkerRow>;
  events: Array<RunEvent>;
}

/** Curves by metric: pairs of step (or second) and value, null where it was NaN or infinite. */
export interface SeriesAnswer {
  series: Record<string, Array<[number, number | null]>>;
}

/** A move that the network considers. */
export interface TopMove {
  move: string;
  western: string;
  japanese: string;
  probability: number;
  value: number | null;
}

/** The game with the move, and the move's own node. */
export interface VariationAnswer {
  game: KeptGame;
  node: number;
}

/** A move beside the main line, the position after it, and where it is played from.

Nodes 0 to the game's length are the positions of the main line. */
export interface VariationNode {
  node: number;
  parent: number;
  move: MoveText;
  position: Position;
  comment: string;
}

/** A move to add from a node. */
export interface VariationRequest {
  parent: number;
  move: string;
}

/** A worker of a run, and how it spends its time (shares from 0 to 1). */
export interface WorkerRow {
  worker: number;
  state: string;
  busy: number;
  waiting: number;
  syncing: number;
  restarts: number;
  lag: number;
  steps_per_s: number;
  resident_mb: number | null;
  node: string | null;
}
