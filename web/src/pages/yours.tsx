/** Games that are kept: those that you played, brought and reviewed. Records are pasted or dropped here. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, bring, type KeptList, type KeptRow, path, remove } from "../api";
import { ago, count } from "../format";
import { useFetch } from "../loading";
import { go, link, replace } from "../router";
import { Button, Dialog, Empty, sentence, Waiting } from "../ui/parts";
import { GamesTabs, Pager, PAGE, resultOf, Select } from "./games";

const MOST = 256 * 1024; // bytes of a record; the server refuses more, too

export function YoursPage({ query }: { query: URLSearchParams }) {
  const search = query.get("search") ?? "";
  const kind = query.get("kind") ?? "";
  const offset = Number(query.get("offset") ?? 0) || 0;
  const wanted = new URLSearchParams({ search, ...(kind && { kind }), offset: String(offset), limit: String(PAGE) });
  const { data, error, reload } = useFetch<KeptList>(`kept?${wanted}`);
  const set = (change: Record<string, string>) => {
    const next = Object.entries({ search, kind, ...change }).filter(([, value]) => value);
    replace(link(["yours"], Object.fromEntries(next)));
  };
  return (
    <>
      <header class="page-head">
        <h1>Your games</h1>
        <GamesTabs here="yours" />
      </header>
      <Bring />
      <form class="filters" aria-label="Which games" onSubmit={(event) => event.preventDefault()}>
        <label class="inline">
          <span>Search</span>
          <input type="search" maxLength={100} value={search} onInput={(event) => set({ search: event.currentTarget.value })} />
        </label>
        <Select
          label="Kind"
          value={kind}
          onChange={(value) => set({ kind: value })}
          options={[["", "all"], ["played", "played"], ["imported", "imported"], ["recorded", "of a run"]]}
        />
      </form>
      {data?.problem && (
        <p class="note warning" role="status">
          {sentence(data.problem)} They are kept until the server stops.
        </p>
      )}
      {!data || error ? (
        <Waiting error={error} what="your games" onRetry={reload} />
      ) : data.games.length === 0 ? (
        <Empty title={search || kind ? "No such games" : "No games yet"}>
          <p>
            {search || kind ? "Other words may find some." : <>Play one, bring one, or review one of a run: it will be here.</>}
          </p>
        </Empty>
      ) : (
        <>
          <KeptTable games={data.games} onDeleted={reload} />
          <Pager total={data.total} offset={offset} onChange={(next) => set({ offset: next ? String(next) : "" })} />
        </>
      )}
    </>
  );
}

/** A box for records: paste into it, drop a file anywhere on the page, or choose one. */
function Bring() {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const [over, setOver] = useState(false);
  const chooser = useRef<HTMLInputElement>(null);
  const send = async (record: Blob) => {
    setProblem(null);
    if (record.size > MOST) {
      setProblem(`this has ${count(record.size)} bytes; a game record may have at most ${count(MOST)}`);
      return;
    }
    try {
      go(link(["review", (await bring(record)).id]));
    } catch (error) {
      setProblem(error instanceof ApiError ? error.message : String(error));
    }
  };
  useEffect(() => {
    const onDrag = (event: DragEvent) => {
      event.preventDefault();
      setOver(event.type === "dragover");
    };
    const onDrop = (event: DragEvent) => {
      onDrag(event);
      const file = event.dataTransfer?.files[0];
      const dropped = event.dataTransfer?.getData("text/plain");
      if (file) send(file);
      else if (dropped) send(new Blob([dropped]));
    };
    addEventListener("dragover", onDrag);
    addEventListener("dragleave", onDrag);
    addEventListener("drop", onDrop);
    return () => {
      removeEventListener("dragover", onDrag);
      removeEventListener("dragleave", onDrag);
      removeEventListener("drop", onDrop);
    };
  }, []);
  const submit = (event: Event) => {
    event.preventDefault();
    send(new Blob([text]));
  };
  return (
    <form class={`card bring${over ? " over" : ""}`} onSubmit={submit} aria-label="Bring a game">
      <label>
        <span>Review a game: paste KIF, KI2, CSA, USI or SFEN, or drop a file</span>
        <textarea rows={3} value={text} spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      {problem && (
        <p class="note error" role="alert">
          {sentence(problem)}
        </p>
      )}
      <div class="row">
        <Button kind="main" type="submit" disabled={!text.trim()}>
          Review
        </Button>
        <Button onClick={() => chooser.current?.click()}>Choose a file</Button>
        <input
          ref={chooser}
          type="file"
          hidden
          aria-label="A game record"
          onChange={(event) => {
            const file = event.currentTarget.files?.[0];
            if (file) send(file);
            event.currentTarget.value = "";
          }}
        />
      </div>
    </form>
  );
}

function KeptTable({ games, onDeleted }: { games: KeptRow[]; onDeleted: () => void }) {
  const [asked, setAsked] = useState<KeptRow | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const drop = async (game: KeptRow) => {
    setAsked(null);
    setProblem(null);
    await remove(path("kept", game.id)).catch((error) => setProblem(error.message));
    onDeleted();
  };
  return (
    <div class="card scroll">
      {problem && (
        <p class="note error" role="alert">
          {sentence(problem)}
        </p>
      )}
      <table class="games">
        <thead>
          <tr>
            <th scope="col">Game</th>
            <th scope="col">Black ☗</th>
            <th scope="col">White ☖</th>
            <th scope="col">Result</th>
            <th scope="col" class="number">Moves</th>
            <th scope="col" class="number">Kept</th>
            <th scope="col">
              <span class="unseen">Download and delete</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {games.map((game) => {
            const address = link(["review", game.id]);
            return (
              <tr key={game.id}>
                <th scope="row">
                  <a href={address}>Review {game.id}</a>
                  <small>{game.kind === "recorded" ? "of a run" : game.kind}</small>
                </th>
                <td class={game.winner === "black" ? "won" : undefined} data-label="☗">{playerOf(game, "black")}</td>
                <td class={game.winner === "white" ? "won" : undefined} data-label="☖">{playerOf(game, "white")}</td>
                <td class="result">{game.reason === null ? "Not finished" : resultOf({ winner: game.winner, reason: game.reason })}</td>
                <td class="number" data-label="moves">{count(game.length)}</td>
                <td class="number muted" data-label="kept">{ago(game.time)}</td>
                <td class="number">
                  <a class="button quiet" href={`api/${path("kept", game.id, "record")}?format=kif`} download aria-label={`KIF of game ${game.id}`}>
                    KIF
                  </a>
                  <Button kind="quiet" icon="bin" label={`Delete game ${game.id}`} onClick={() => setAsked(game)} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {asked && (
        <Dialog title={`Delete game ${asked.id}?`} onClose={() => setAsked(null)}>
          <p>
            ☗ {playerOf(asked, "black")} against ☖ {playerOf(asked, "white")}, {count(asked.length)} moves, with its
            review. This cannot be undone.
          </p>
          <div class="row">
            <Button kind="danger" onClick={() => drop(asked)}>
              Delete
            </Button>
            <Button onClick={() => setAsked(null)}>Keep it</Button>
          </div>
        </Dialog>
      )}
    </div>
  );
}

export function playerOf(game: KeptRow, side: "black" | "white"): string {
  return side === game.side ? "You" : game[side] || (side === "black" ? "Black" : "White");
}
