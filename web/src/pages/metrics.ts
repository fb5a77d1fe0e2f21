/** What a run logs, and which charts it makes. */
import type { Shape } from "../charts/table";
import { percent, short } from "../format";

type Format = (value: number | null) => string;

export interface ChartPlan {
  title: string;
  /** The metrics that are lines of this chart. */
  names: string[];
  labels: string[];
  hint?: string;
  shape?: Shape;
  format?: Format;
  range?: [number | null, number | null];
}

export interface Group {
  title: string;
  charts: ChartPlan[];
}

interface Wanted {
  title: string;
  of: (string | RegExp)[];
  hint?: string;
  shape?: Shape;
  format?: Format;
  range?: [number | null, number | null];
}

const SHOGI: Record<string, Wanted[]> = {
  Games: [
    { title: "Wins against", of: [/^wins against (.+)/], format: percent, range: [0, 1], hint: "Share of evaluation games won" },
    { title: "How games end", of: [/^ended by (.+)/], shape: "stacked", format: percent, range: [0, 1], hint: "Share of self-play games" },
    { title: "Game length", of: ["game_length"], range: [0, null], hint: "Moves in a self-play game" },
  ],
  Learning: [
    { title: "Policy loss", of: ["policy_loss"] },
    { title: "Value loss", of: ["value_loss"] },
    { title: "Entropy", of: ["entropy"], hint: "Falls slowly while the policy makes up its mind" },
    { title: "KL divergence", of: ["kl"], hint: "How far an update moves the policy; about 0.01 is healthy", range: [0, null] },
    { title: "Clip fraction", of: ["clip_fraction"], format: percent, hint: "0.05 to 0.2 is healthy", range: [0, null] },
    { title: "Explained variance", of: ["explained_variance"], hint: "How much of the outcome the value head foresees" },
  ],
  Machine: [
    { title: "Speed", of: [/^(?:(collect|learn)_)?steps_per_s$/], format: short, range: [0, null], hint: "Steps a second: collecting, learning, and both together" },
    { title: "Workers' time", of: [/^workers_(busy|waiting|syncing)$/], shape: "stacked", format: percent, range: [0, 1] },
    { title: "Queue", of: ["rollouts_waiting"], range: [0, 1], hint: "Rollouts that wait for the learner" },
    { title: "Memory", of: ["memory_mb"], format: (value) => `${short(value)} MB`, range: [0, null] },
    { title: "Lag", of: ["lag"], range: [0, 1], hint: "Versions between the weights that played and those that learn" },
    { title: "Restarts", of: ["restarts", "dropped_rollouts"], range: [0, 1] },
  ],
};

const WORLD: Record<string, Wanted[]> = {
  Learning: [
    { title: "Return", of: [/^return (agent_\d+)$/], hint: "What each agent gets in an episode; dashed: acting at random" },
    { title: "Loss", of: [/^loss (agent_\d+)$/] },
  ],
  Society: [
    { title: "Efficiency", of: ["efficiency"], hint: "What all agents together get per turn" },
    { title: "Equality", of: ["equality"], range: [null, 1], hint: "1 if all agents get the same" },
    { title: "Sustainability", of: ["sustainability"], range: [0, null], hint: "The mean turn in which rewards come" },
    { title: "Peace", of: ["peace"], range: [0, null], hint: "Agents that are not timed out, on average" },
  ],
  Machine: [
    { title: "Speed", of: ["turns_per_s"], format: short, range: [0, null], hint: "Turns a second over all copies" },
    { title: "Memory", of: ["memory_mb"], format: (value) => `${short(value)} MB`, range: [0, null] },
    { title: "Failed trainings", of: ["failed_trainings"], range: [0, 1] },
  ],
};

const LABELS: Record<string, string> = {
  steps_per_s: "together", rollouts_waiting: "waiting", dropped_rollouts: "dropped rollouts",
  memory_mb: "memory", turns_per_s: "turns a second",
};

/** Colours that stay the same whichever lines there are; grey is what nobody wants. */
const COLORS: Record<string, number> = {
  checkmate: 1, declaration: 3, repetition: 4, "no legal move": 5, "perpetual check": 7, "move limit": 8,
  busy: 1, syncing: 4, waiting: 8,
};

export const colorOf = (label: string): number | undefined => COLORS[label];

/** The charts of a run with these metrics, and last those that nobody planned. */
export function plan(kind: "shogi" | "world", names: string[]): { groups: Group[]; others: ChartPlan[] } {
  const used = new Set<string>();
  const groups = Object.entries(kind === "shogi" ? SHOGI : WORLD).map(([title, charts]) => ({
    title,
    charts: charts.map((wanted) => chartOf(wanted, names, used)).filter((chart) => chart.names.length > 0),
  }));
  return {
    groups: groups.filter((group) => group.charts.length > 0),
    others: othersOf(names.filter((name) => !used.has(name))),
  };
}

/** A chart for each metric; those of agents are lines of one chart, beside what all have together. */
function othersOf(names: string[]): ChartPlan[] {
  const charts = new Map<string, ChartPlan>();
  for (const name of names) {
    const [, whole = name, agent] = name.match(/^(.+) (agent_\d+)$/) ?? [];
    const chart = charts.get(whole) ?? { title: whole.replaceAll("_", " "), names: [], labels: [] };
    charts.set(whole, chart);
    chart.names.push(name);
    chart.labels.push(agent ? agent.replace("_", " ") : "");
  }
  for (const { labels } of charts.values()) {
    if (labels.length > 1) labels.forEach((label, i) => (labels[i] = label || "all"));
  }
  return [...charts.values()];
}

function chartOf({ of, ...rest }: Wanted, names: string[], used: Set<string>): ChartPlan {
  const found: [string, string][] = [];
  for (const pattern of of) {
    for (const name of names) {
      const match = typeof pattern === "string" ? name === pattern && [name] : name.match(pattern);
      if (!match) continue;
      used.add(name);
      found.push([name, LABELS[name] ?? (match[1] ?? name).replaceAll("_", " ")]);
    }
  }
  return { ...rest, names: found.map(([name]) => name), labels: found.map(([, label]) => label) };
}

export function isShare(name: string): boolean {
  return /^(wins|draws|losses) against |^ended by |^decided$|^workers_|clip_fraction$/.test(name);
}

