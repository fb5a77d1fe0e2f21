/** One run: is it learning, are the workers busy, how does it play? */
import { useMemo, useState } from "preact/hooks";
import type { Elo, RunDetail, RunEvent, Series } from "../api";
import { Chart } from "../charts/chart";
import type { Line } from "../charts/table";
import { ago, count, howItPlays, number, percent, short, timeOfDay } from "../format";
import { link } from "../router";
import { Button, ConnectionNote, Empty, Progress, sentence, StateBadge, Tile, Waiting } from "../ui/parts";
import { EpisodeCard } from "./episode";
import { LiveCard } from "./live";
import { type ChartPlan, colorOf, plan } from "./metrics";
import { speed, timeLeft } from "./runs";
import { Strength } from "./strength";
import { useRun } from "./use_run";
import { Workers } from "./workers";

export function RunPage({ name }: { name: string }) {
  const { run, series, live, error, connection, reload } = useRun(name);
  if (!run) {
    return (
      <>
        <h1>{name}</h1>
        <Waiting error={error} what={`the run ${name}`} onRetry={reload} />
      </>
    );
  }
  return (
    <>
      <RunHead run={run} />
      <ConnectionNote state={connection} />
      {run.error ? (
        <Empty title="This run is broken" tone="error">
          <p>{sentence(run.error)}</p>
        </Empty>
      ) : (
        <RunBody run={run} series={series} live={live} />
      )}
    </>
  );
}

function RunHead({ run }: { run: RunDetail }) {
  return (
    <header class="page-head">
      <div>
        <p class="crumb">
          <a href={link(["runs"])}>Runs</a>
        </p>
        <h1>
          {run.name} <StateBadge state={run.state} />
        </h1>
      </div>
      <div class="actions">
        {run.kind === "shogi" && (
          <>
            <a class="button plain" href={link(["games"], { run: run.name })}>
              Games
            </a>
            {run.checkpoints.length > 0 && (
              <a class="button main" href={link(["play"], { run: run.name })}>
                Play against it
              </a>
            )}
          </>
        )}
      </div>
    </header>
  );
}

function RunBody({ run, series, live }: { run: RunDetail; series: Series; live: ReturnType<typeof useRun>["live"] }) {
  const names = run.names.join("\n");
  const { groups, others } = useMemo(() => plan(run.kind, run.names), [run.kind, names]);
  const isWorld = run.kind === "world";
  const [first, ...rest] = groups;
  return (
    <>
      <Tiles run={run} />
      <div class="overview">
        {isWorld ? <EpisodeCard run={run} /> : <LiveCard games={live} run={run.name} state={run.state} />}
        <div class="charts tall">
          {first?.charts.map((chart) => (
            <PlannedChart key={chart.title} chart={chart} series={series} run={run} />
          ))}
        </div>
      </div>
      {run.ladder && <Strength ladder={run.ladder} />}
      {rest.map((group) => (
        <section key={group.title}>
          <h2>{group.title}</h2>
          <div class="charts">
            {group.charts.map((chart) => (
              <PlannedChart key={chart.title} chart={chart} series={series} run={run} />
            ))}
          </div>
          {group.title === "Machine" && run.workers.length > 0 && <Workers workers={run.workers} />}
        </section>
      ))}
      <Others charts={others} series={series} run={run} />
      <Events events={run.events} />
      <details class="card fold">
        <summary>Settings</summary>
        <pre tabIndex={0}>{run.config}</pre>
      </details>
    </>
  );
}

function Tiles({ run }: { run: RunDetail }) {
  const { latest } = run;
  const left = timeLeft(run);
  const opponents = run.names.filter((name) => name.startsWith("wins against "));
  return (
    <dl class="tiles">
      <div class="tile wide">
        <dt>Steps</dt>
        <dd>
          {count(run.steps)}
          <small>
            {run.total_steps ? `of ${short(run.total_steps)}` : ""} {left ? `· ${left}` : ""}
          </small>
          {run.total_steps ? <Progress share={run.steps / run.total_steps} label="Share of the steps" /> : null}
        </dd>
      </div>
      <Tile label="Speed" value={speed(run)} />
      {run.games != null && <Tile label="Games" value={count(run.games)} />}
      {run.elo.map((elo) => (
        <Tile key={elo.nodes} label={`Elo, ${howItPlays(elo.nodes)}`} value={count(elo.rating)} note={eloNote(elo, run)} />
      ))}
      {opponents.map((name) => (
        <Tile key={name} label={name.replace("wins", "Wins")} value={percent(latest[name])} />
      ))}
      {run.return != null && <Tile label="Return" value={number(run.return)} note={randomNote(run)} />}
      <Tile label="Changed" value={ago(run.updated)} />
    </dl>
  );
}

/** Its 95 % interval, and which checkpoint it is of if training has gone on since. */
function eloNote({ low, high, steps }: Elo, run: RunDetail): string {
  const interval = `±\u00a0${count((high - low) / 2)}`;
  return steps === run.steps ? interval : `${interval} after ${short(steps)}`;
}

function randomNote(run: RunDetail): string | undefined {
  const random = run.random_return;
  if (!random?.length) return undefined;
  return `random: ${number(random.reduce((sum, value) => sum + value, 0) / random.length)}`;
}

function PlannedChart({ chart, series, run }: { chart: ChartPlan; series: Series; run: RunDetail }) {
  const own = chart.names.map((name) => series[name]);
  const lines = useMemo(() => {
    const lines: Line[] = chart.names.map((name, i) => {
      const label = chart.labels[i]!;
      const color = chart.shape === "stacked" ? colorOf(label) : undefined;
      return { name: label, color, points: series[name] ?? [] };
    });
    if (chart.title === "Return") lines.push(...randomLines(run, lines));
    return lines;
  }, [chart, ...own]);
  const { title, shape, format, range, hint } = chart;
  return <Chart title={title} lines={lines} shape={shape} format={format} range={range} hint={hint} sync={run.name} />;
}

/** What agents get that act at random: the line to beat. */
function randomLines(run: RunDetail, lines: Line[]): Line[] {
  const random = run.random_return;
  const points = lines[0]?.points ?? [];
  if (!random || points.length < 2) return [];
  const ends = [points[0]![0], points.at(-1)![0]];
  const mean = random.reduce((sum, value) => sum + value, 0) / random.length;
  return [{ name: "random", color: 8, dash: true, points: ends.map((step) => [step, mean]) }];
}

function Others({ charts, series, run }: { charts: ChartPlan[]; series: Series; run: RunDetail }) {
  const [open, setOpen] = useState(false);
  if (charts.length === 0) return null;
  return (
    <section>
      <Button kind="quiet" onClick={() => setOpen(!open)}>
        {open ? "Hide" : "Show"} {charts.length} more {charts.length === 1 ? "metric" : "metrics"}
      </Button>
      {open && (
        <div class="charts">
          {charts.map((chart) => (
            <PlannedChart key={chart.title} chart={chart} series={series} run={run} />
          ))}
        </div>
      )}
    </section>
  );
}

function Events({ events }: { events: RunEvent[] }) {
  return (
    <section>
      <h2>Events</h2>
      {events.length === 0 ? (
        <p class="hint">Nothing happened yet.</p>
      ) : (
        <ol class="card events" tabIndex={0} aria-label="Events, newest first">
          {events.map((event) => (
            <li key={`${event.time}${event.message}`} class={event.level}>
              <time>{timeOfDay(event.time)}</time>
              <span>{event.message}</span>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}
