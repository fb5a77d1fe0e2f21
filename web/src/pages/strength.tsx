/** How strong a run is: the ratings of its checkpoints, and the references that they met. */
import { useMemo } from "preact/hooks";
import type { Ladder, LadderPlayer } from "../api";
import { Chart } from "../charts/chart";
import type { Line } from "../charts/table";
import { count, howItPlays } from "../format";
import { sentence } from "../ui/parts";

export function Strength({ ladder: { players, error } }: { ladder: Ladder }) {
  const overSteps = useMemo(() => curves(players, (player) => player.steps), [players]);
  const overTime = useMemo(() => curves(players, (player) => player.cpu_hours), [players]);
  if (error === null && players.length === 0) return null;
  return (
    <section>
      <h2>Strength</h2>
      {error !== null ? (
        <p class="note warning">{sentence(error)}</p>
      ) : (
        <div class="charts">
          <Chart title="Elo over steps" lines={overSteps} shape="interval" format={count} hint={SCALE} />
          <Chart title="Elo over processor hours" lines={overTime} shape="interval" format={count} hint={SCALE} />
          <Players players={players} />
        </div>
      )}
    </section>
  );
}

const SCALE = "With 95 % intervals; the random player is 0, and 400 more scores 10 points of 11";

/** A line for each way in which checkpoints play. */
function curves(players: LadderPlayer[], at: (player: LadderPlayer) => number | null): Line[] {
  const rated = players.filter((player) => player.steps !== null && at(player) !== null);
  rated.sort((a, b) => at(a)! - at(b)!);
  const ways = [...new Set(rated.map((player) => player.nodes))].sort((a, b) => (a ?? 0) - (b ?? 0));
  return ways.map((nodes) => {
    const own = rated.filter((player) => player.nodes === nodes);
    return {
      name: howItPlays(nodes),
      points: own.map((player) => [at(player)!, player.rating]),
      limits: own.map((player) => [player.low, player.high]),
    };
  });
}

function Players({ players }: { players: LadderPlayer[] }) {
  const low = Math.min(...players.map((player) => player.low));
  const high = Math.max(...players.map((player) => player.high));
  const at = (rating: number) => `${((rating - low) / (high - low || 1)) * 100}%`;
  return (
    <div class="card ladder" tabIndex={0} role="region" aria-label="Players by their Elo">
      <table>
        <thead>
          <tr>
            <th scope="col">Player</th>
            <th scope="col" class="number">Elo</th>
            <th scope="col">Interval</th>
            <th scope="col" class="number">Games</th>
          </tr>
        </thead>
        <tbody>
          {players.map((player) => (
            <tr key={player.name} class={player.steps === null ? "muted" : undefined}>
              <th scope="row">
                {player.name}
                {player.steps !== null && player.nodes === null && <small> {howItPlays(null)}</small>}
              </th>
              <td class="number">{count(player.rating)}</td>
              <td class="whisker" aria-label={`${count(player.low)} to ${count(player.high)}`}>
                <span style={{ left: at(player.low), right: `calc(100% - ${at(player.high)})` }} />
                <i style={{ left: at(player.rating) }} />
              </td>
              <td class="number">{count(player.games)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
