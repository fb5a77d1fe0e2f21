/** Games that a run played, to choose one and look at it. */
import { type GameList, type GameRow, path, type RunList } from "../api";
import { ago, count, short } from "../format";
import { useFetch } from "../loading";
import { go, link, replace } from "../router";
import { Button, Empty, Waiting } from "../ui/parts";

export const PAGE = 50;

/** From the games of runs to your own, and back. */
export function GamesTabs({ here }: { here: "games" | "yours" }) {
  return (
    <nav class="tabs" aria-label="Whose games">
      <a href={link(["games"])} aria-current={here === "games" ? "page" : undefined}>
        Games of runs
      </a>
      <a href={link(["yours"])} aria-current={here === "yours" ? "page" : undefined}>
        Your games
      </a>
    </nav>
  );
}

export function GamesPage({ query }: { query: URLSearchParams }) {
  const runs = useFetch<RunList>("runs");
  const shogi = runs.data?.runs.filter((run) => run.kind === "shogi" && run.state !== "broken") ?? [];
  const run = query.get("run") ?? shogi[0]?.name ?? null;
  if (!runs.data) {
    return (
      <>
        <h1>Games</h1>
        <Waiting error={runs.error} what="the runs" onRetry={runs.reload} />
      </>
    );
  }
  if (run === null) {
    return (
      <>
        <header class="page-head">
          <h1>Games</h1>
          <GamesTabs here="games" />
        </header>
        <Empty title="No games yet">
          <p>Games appear when a run of Shogi has played some.</p>
          <pre>keisei train</pre>
        </Empty>
      </>
    );
  }
  return <GamesOf key={run} run={run} runs={shogi.map((row) => row.name)} query={query} />;
}

function GamesOf({ run, runs, query }: { run: string; runs: string[]; query: URLSearchParams }) {
  const filters = Object.fromEntries(
    ["kind", "winner", "reason"].flatMap((key) => (query.get(key) ? [[key, query.get(key)!]] : [])),
  );
  const offset = Number(query.get("offset") ?? 0) || 0;
  const wanted = new URLSearchParams({ ...filters, record: "1", offset: String(offset), limit: String(PAGE) });
  const { data, error, reload } = useFetch<GameList>(`${path("runs", run, "games")}?${wanted}`);
  const set = (change: Record<string, string>) => {
    const next = Object.entries({ run, ...filters, ...change }).filter(([, value]) => value);
    replace(link(["games"], Object.fromEntries(next)));
  };
  return (
    <>
      <header class="page-head">
        <h1>Games</h1>
        <GamesTabs here="games" />
        <form class="filters" aria-label="Which games" onSubmit={(event) => event.preventDefault()}>
          <Select
            label="Run"
            value={run}
            onChange={(value) => replace(link(["games"], { run: value }))}
            options={runs.map((name) => [name, name])}
          />
          <Select
            label="Kind"
            value={filters.kind ?? ""}
            onChange={(kind) => set({ kind })}
            options={[["", "all"], ["self-play", "self-play"], ["evaluation", "evaluation"]]}
          />
          <Select
            label="Winner"
            value={filters.winner ?? ""}
            onChange={(winner) => set({ winner })}
            options={[["", "any"], ["black", "Black"], ["white", "White"], ["none", "drawn"]]}
          />
          <Select
            label="Ended by"
            value={filters.reason ?? ""}
            onChange={(reason) => set({ reason })}
            options={[["", "any"], ...(data?.reasons ?? []).map((reason): [string, string] => [reason, reason])]}
          />
        </form>
      </header>
      {!data || error ? (
        <Waiting error={error} what="the games" onRetry={reload} />
      ) : data.games.length === 0 ? (
        <Empty title="No such games">
          <p>{Object.keys(filters).length ? "Other filters may find some." : "This run has stored no games yet."}</p>
        </Empty>
      ) : (
        <>
          <GameTable run={run} games={data.games} />
          <Pager total={data.total} offset={offset} onChange={(next) => set({ offset: next ? String(next) : "" })} />
        </>
      )}
    </>
  );
}

function GameTable({ run, games }: { run: string; games: GameRow[] }) {
  return (
    <div class="card scroll">
      <table class="games">
        <thead>
          <tr>
            <th scope="col">Game</th>
            <th scope="col">Black ☗</th>
            <th scope="col">White ☖</th>
            <th scope="col">Result</th>
            <th scope="col" class="number">Moves</th>
            <th scope="col" class="number">At step</th>
            <th scope="col" class="number">Played</th>
          </tr>
        </thead>
        <tbody>
          {games.map((game) => {
            const address = link(["games", run, game.id]);
            return (
              <tr key={game.id} class={game.has_record ? "link" : undefined} onClick={() => game.has_record && go(address)}>
                <th scope="row">
                  {game.has_record ? <a href={address}>{game.id}</a> : game.id}
                  <small>{game.kind}</small>
                </th>
                <td class={game.winner === "black" ? "won" : undefined} data-label="☗">{game.black}</td>
                <td class={game.winner === "white" ? "won" : undefined} data-label="☖">{game.white}</td>
                <td class="result">{resultOf(game)}</td>
                <td class="number" data-label="moves">{count(game.length)}</td>
                <td class="number" data-label="step">{short(game.step)}</td>
                <td class="number muted" data-label="played">{ago(game.time)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

export function resultOf({ winner, reason }: { winner: string | null; reason: string }): string {
  const who = winner === null ? "Drawn" : winner === "black" ? "Black wins" : "White wins";
  return `${who}, ${reason}`;
}

export function Pager({ total, offset, onChange }: { total: number; offset: number; onChange: (offset: number) => void }) {
  if (total <= PAGE) return <p class="hint">{count(total)} {total === 1 ? "game" : "games"}</p>;
  return (
    <div class="pager">
      <Button disabled={offset === 0} onClick={() => onChange(Math.max(0, offset - PAGE))}>
        Newer
      </Button>
      <span class="numbers">
        {count(offset + 1)} to {count(Math.min(total, offset + PAGE))} of {count(total)}
      </span>
      <Button disabled={offset + PAGE >= total} onClick={() => onChange(offset + PAGE)}>
        Older
      </Button>
    </div>
  );
}

interface SelectProps {
  label: string;
  value: string;
  options: [string, string][];
  onChange: (value: string) => void;
}

export function Select({ label, value, options, onChange }: SelectProps) {
  return (
    <label class="inline">
      <span>{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([key, text]) => (
          <option key={key} value={key}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
