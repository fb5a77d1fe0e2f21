/** What each worker does with its time. */
import type { WorkerRow } from "../api";
import { count, number, percent, short } from "../format";

const PARTS = ["busy", "waiting", "syncing"] as const;

export function Workers({ workers }: { workers: WorkerRow[] }) {
  const several = workers.some((worker) => worker.node !== null);
  return (
    <div class="card scroll">
      <table class="workers">
        <caption>
          Workers
          <span class="keys" aria-hidden="true">
            {PARTS.map((part) => (
              <span key={part} class={`key ${part}`}>
                {part}
              </span>
            ))}
          </span>
        </caption>
        <thead>
          <tr>
            <th scope="col">Worker</th>
            {several && <th scope="col">Machine</th>}
            <th scope="col">State</th>
            <th scope="col" class="time">Time</th>
            <th scope="col" class="number">Speed</th>
            <th scope="col" class="number">Lag</th>
            <th scope="col" class="number">Restarts</th>
            <th scope="col" class="number">Memory</th>
          </tr>
        </thead>
        <tbody>
          {workers.map((worker) => (
            <tr key={worker.worker}>
              <th scope="row">{worker.worker}</th>
              {several && <td>{worker.node ?? "–"}</td>}
              <td>{worker.state}</td>
              <td>
                <TimeBar worker={worker} />
              </td>
              <td class="number">{worker.steps_per_s == null ? "–" : `${short(worker.steps_per_s)}/s`}</td>
              <td class="number">{number(worker.lag)}</td>
              <td class="number">{count(worker.restarts)}</td>
              <td class="number">{worker.resident_mb == null ? "–" : `${short(worker.resident_mb)} MB`}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function TimeBar({ worker }: { worker: WorkerRow }) {
  const text = PARTS.map((part) => `${part} ${percent(worker[part])}`).join(", ");
  return (
    <div class="time-bar" role="img" aria-label={text} title={text}>
      {PARTS.map((part) => (
        <span key={part} class={part} style={{ width: `${(worker[part] ?? 0) * 100}%` }} />
      ))}
    </div>
  );
}
