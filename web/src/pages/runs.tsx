/** All runs at a glance, and the curves of some of them side by side. */
import { useState } from "preact/hooks";
import type { RunList, RunRow } from "../api";
import { ago, count, duration, howItPlays, short } from "../format";
import { useEvents } from "../loading";
import { link, replace } from "../router";
import { ConnectionNote, Empty, Progress, sentence, StateBadge, Waiting } from "../ui/parts";
import { Compare } from "./compare";

/** All runs; or, of kind "world", those of worlds alone. */
export function RunsPage({ query, kind }: { query: URLSearchParams; kind?: RunRow["kind"] }) {
  const [all, setRuns] = useState<RunRow[] | null>(null);
  const runs = all && all.filter((run) => !kind || run.kind === kind);
  const [section, title] = kind === "world" ? ["worlds", "Worlds"] : ["runs", "Runs"];
  const connection = useEvents("runs/stream", {
    runs: (data: RunList) => setRuns(data.runs),
  });
  if (runs === null) {
    return (
      <>
        <h1>{title}</h1>
        <ConnectionNote state={connection} />
        <Waiting error={null} what="the runs" />
      </>
    );
  }
  const chosen = query.has("compare")
    ? query.get("compare")!.split(",").filter(Boolean)
    : likeTheFirst(runs).slice(0, 3);
  const toggle = (name: string) => {
    const rest = chosen.filter((other) => other !== name);
    const next = rest.length === chosen.length ? [...chosen, name] : rest;
    replace(link([section], { ...Object.fromEntries(query), compare: next.join(",") }));
  };
  return (
    <>
      <h1>{title}</h1>
      <ConnectionNote state={connection} />
      {runs.length === 0 ? <NoRuns kind={kind} /> : <RunList runs={runs} chosen={chosen} onToggle={toggle} />}
      {runs.length > 0 && <Compare runs={named(runs, chosen)} section={section} query={query} />}
    </>
  );
}

/** The newest run that can be read, and others that can be compared with it. */
function likeTheFirst(runs: RunRow[]): string[] {
  const sound = runs.filter((run) => run.state !== "broken");
  const alike = sound.filter((run) => run.kind === sound[0]!.kind && run.world === sound[0]!.world);
  return alike.map((run) => run.name);
}

function named(runs: RunRow[], names: string[]): RunRow[] {
  return names.flatMap((name) => runs.find((run) => run.name === name) ?? []);
}

function NoRuns({ kind }: { kind?: RunRow["kind"] }) {
  if (kind === "world") {
    return (
      <Empty title="No worlds yet">
        <p>Many agents, one world: start one in a terminal; it appears here by itself.</p>
        <pre>keisei worlds train treasure_hunt</pre>
      </Empty>
    );
  }
  return (
    <Empty title="No runs yet">
      <p>Start one in a terminal; it appears here by itself.</p>
      <pre>keisei train</pre>
      <p>
        Or <a href={link(["play"])}>play a game</a>.
      </p>
    </Empty>
  );
}

interface ListProps {
  runs: RunRow[];
  chosen: string[];
  onToggle: (name: string) => void;
}

function RunList({ runs, chosen, onToggle }: ListProps) {
  return (
    <div class="card scroll">
      <table class="runs">
        <thead>
          <tr>
            <th scope="col">
              <span class="unseen">Compare</span>
            </th>
            <th scope="col">Run</th>
            <th scope="col">State</th>
            <th scope="col">Steps</th>
            <th scope="col" class="number">Speed</th>
            <th scope="col" class="number">Games</th>
            <th scope="col" class="number">Strength</th>
            <th scope="col" class="number">Changed</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <RunLine key={run.name} run={run} chosen={chosen} onToggle={onToggle} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function RunLine({ run, chosen, onToggle }: Omit<ListProps, "runs"> & { run: RunRow }) {
  const index = chosen.indexOf(run.name);
  const broken = run.state === "broken";
  return (
    <tr class={broken ? "broken" : undefined} data-run={run.name}>
      <td class={`compare series-${index + 1}`}>
        {!broken && (
          <input
            type="checkbox"
            aria-label={`Compare ${run.name}`}
            checked={index >= 0}
            onChange={() => onToggle(run.name)}
          />
        )}
      </td>
      <th scope="row">
        <a href={link(["runs", run.name])}>{run.name}</a>
        <small>{run.kind === "world" ? (run.world ?? "world").replaceAll("_", " ") : "shogi"}</small>
      </th>
      <td class="state">
        <StateBadge state={run.state} />
      </td>
      {broken ? (
        <td colSpan={5} class="problem">
          {sentence(run.error ?? "This folder cannot be read")}
        </td>
      ) : (
        <>
          <td class="steps">
            <StepsCell run={run} />
          </td>
          <td class="number" data-label="speed">{speed(run)}</td>
          <td class="number" data-label="games">{count(run.games)}</td>
          <td class="number" data-label="strength">{strength(run)}</td>
          <td class="number muted" data-label="changed">{ago(run.updated)}</td>
        </>
      )}
    </tr>
  );
}

function StepsCell({ run }: { run: RunRow }) {
  const share = run.total_steps ? run.steps / run.total_steps : null;
  return (
    <>
      <span class="numbers">
        {short(run.steps)}
        {run.total_steps ? <span class="muted"> of {short(run.total_steps)}</span> : null}
      </span>
      {share !== null && <Progress share={share} label={`${run.name}: share of its steps`} />}
    </>
  );
}

export function speed(run: RunRow): string {
  if (run.steps_per_s == null || run.state !== "training") return "–";
  return `${short(run.steps_per_s)}/s`;
}

function strength(run: RunRow) {
  const [elo] = run.elo;
  if (elo) {
    const { rating, low, high } = elo;
    const interval = Math.round((high - low) / 2);
    return (
      <span title={`${howItPlays(elo.nodes)}: ${count(low)} to ${count(high)} after ${count(elo.steps)} steps`}>
        {count(rating)} <small>± {interval} Elo</small>
      </span>
    );
  }
  if (run.return != null) {
    return (
      <>
        {short(run.return)} <small>return</small>
      </>
    );
  }
  return "–";
}

/** Time to the end at the present speed. */
export function timeLeft(run: RunRow): string | null {
  if (!run.total_steps || !run.steps_per_s || run.state !== "training") return null;
  return `${duration((run.total_steps - run.steps) / run.steps_per_s)} left`;
}
