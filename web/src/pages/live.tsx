/** A game that is being played now, with what the policy thinks of it. */
import { useMemo, useState } from "preact/hooks";
import { type GameDetail, type GameList, type LiveGame, path, type RunRow, type TopMove } from "../api";
import { Board } from "../board/board";
import { ValueGraph } from "../charts/value_graph";
import { chance, chances, percent } from "../format";
import { useFetch } from "../loading";
import { link } from "../router";
import { settings, useStore } from "../store";
import { Button, Empty, Waiting } from "../ui/parts";
import { resultOf } from "./games";

export function LiveCard({ games, run, state }: { games: LiveGame[]; run: string; state: RunRow["state"] }) {
  const [chosen, setChosen] = useState(0);
  const index = Math.min(chosen, Math.max(0, games.length - 1));
  const game = games[index];
  if (!game && state !== "training") return <LastGame run={run} />;
  if (!game) {
    return (
      <section class="card live" aria-label="Live game">
        <Empty title="Waiting for the first game">
          <p>Games of the workers appear here in a moment.</p>
        </Empty>
      </section>
    );
  }
  return (
    <section class="card live" aria-label="Live game">
      <div class="card-head">
        <h2>
          Live <span class="muted">game {game.game} · move {game.move_number}</span>
        </h2>
        {games.length > 1 && (
          <span class="stepper">
            <Button
              kind="quiet"
              icon="previous"
              label="Game before"
              onClick={() => setChosen((index + games.length - 1) % games.length)}
            />
            <Button kind="quiet" icon="next" label="Next game" onClick={() => setChosen((index + 1) % games.length)} />
          </span>
        )}
      </div>
      <Game game={game} />
    </section>
  );
}

function Game({ game }: { game: LiveGame }) {
  const arrows = useMemo(() => arrowsOf(game.top.slice(0, 3)), [game.top]);
  const values = useMemo(() => spread(game.values), [game.values]);
  const newest = game.values.at(-1)?.[1] ?? null;
  return (
    <>
      <Board position={game.position} arrows={arrows} label="Game in play" />
      <div class="thoughts">
        <TopMoves top={game.top} />
        <div class="value">
          <p>
            Chance to win <b>{chances(newest)}</b>
          </p>
          <ValueGraph values={values} least={30} />
        </div>
      </div>
    </>
  );
}

/** The end of the newest game that was recorded, for a run that does not play now. */
function LastGame({ run }: { run: string }) {
  const list = useFetch<GameList>(`${path("runs", run, "games")}?record=1&limit=1`);
  const id = list.data?.games[0]?.id;
  const { data, error } = useFetch<GameDetail>(id === undefined ? null : path("runs", run, "games", id));
  const position = data?.positions.at(-1);
  return (
    <section class="card live" aria-label="Last game">
      {data && position ? (
        <>
          <div class="card-head">
            <h2>
              Last game <span class="muted">{resultOf(data)}</span>
            </h2>
            <a class="button plain" href={link(["games", run, data.id])}>
              Replay
            </a>
          </div>
          <Board position={position} label="The end of the last game" />
          <ValueGraph values={data.values} />
        </>
      ) : list.data && id === undefined ? (
        <Empty title="No game in play">
          <p>While this run trains, its games are shown here.</p>
        </Empty>
      ) : (
        <Waiting error={list.error ?? error} what="the last game" />
      )}
    </section>
  );
}

/** Values of some plies as a list over all plies. */
function spread(values: [number, number | null][]): (number | null)[] {
  const first = values[0]?.[0] ?? 0;
  const list: (number | null)[] = [];
  for (const [ply, value] of values) list[ply - first] = value;
  return Array.from(list, (value) => value ?? null);
}

export function arrowsOf(top: TopMove[]) {
  const most = top[0]?.probability || 1;
  return top.map((move, i) => ({ usi: move.move, weight: move.probability / most, best: i === 0 }));
}

export function TopMoves({ top, onChoose }: { top: TopMove[]; onChoose?: (usi: string) => void }) {
  const { notation } = useStore(settings);
  const valued = top.some((move) => move.value != null);
  return (
    <>
    {valued && (
      <p class="top-heads muted" aria-hidden="true">
        <span>how likely</span>
        <span>wins</span>
      </p>
    )}
    <ol class={`top-moves${valued ? " valued" : ""}`} aria-label="The policy's moves">
      {top.slice(0, 5).map((move) => {
        const content = (
          <>
            <span class="move">{move[notation]}</span>
            <span class="bar-of">
              <span style={{ width: `${move.probability * 100}%` }} />
            </span>
            <span class="share">{percent(move.probability)}</span>
            {valued && <span class="worth">{move.value == null ? "" : percent(chance(move.value, "black"))}</span>}
          </>
        );
        return (
          <li key={move.move}>
            {onChoose ? (
              <button type="button" onClick={() => onChoose(move.move)}>
                {content}
              </button>
            ) : (
              <div>{content}</div>
            )}
          </li>
        );
      })}
    </ol>
    </>
  );
}
