/** Before a game: against whom, from which side and position, and how strong. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { ApiError, type Elo, type Info, type NewGame, path, type PlayedGame, type PlayerList, type PlayerRow, type PositionAnswer, post, type Side } from "../api";
import { Board } from "../board/board";
import { count, short } from "../format";
import { useFetch } from "../loading";
import { go, link } from "../router";
import { Button, Choice, sentence, Waiting } from "../ui/parts";

/** Positions that a run's network may search for a move; none: it plays by instinct. */
const SEARCHES = [0, 16, 50, 100, 200, 400, 800, 1600, 3200];
const SFEN = "sfen";
const START = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1";

type Clock = "none" | "5+10" | "10+30" | "0+30";
const CLOCKS: Record<Clock, { main: number; byoyomi: number } | null> = {
  none: null,
  "5+10": { main: 300, byoyomi: 10 },
  "10+30": { main: 600, byoyomi: 30 },
  "0+30": { main: 0, byoyomi: 30 },
};

export function PlayPage({ query }: { query: URLSearchParams }) {
  const players = useFetch<PlayerList>("players");
  const info = useFetch<Info>("info");
  if (!players.data || !info.data) {
    return (
      <>
        <h1>Play</h1>
        <Waiting error={players.error ?? info.error} what="the players" onRetry={players.reload} />
      </>
    );
  }
  return <Setup players={players.data.players} info={info.data} query={query} />;
}

interface SetupProps {
  players: PlayerRow[];
  info: Info;
  query: URLSearchParams;
}

function Setup({ players, info, query }: SetupProps) {
  const run = query.get("run");
  const opponents = useMemo(() => opponentsOf(players), [players]);
  const [opponent, setOpponent] = useState(opponents.find(({ name }) => name === run) ?? opponents[0]!);
  const [age, setAge] = useState(opponent.players.length - 1);
  const [side, setSide] = useState<Side | "random">("black");
  const [strength, setStrength] = useState(3);
  const player = opponent.players[opponent.levels ? strength : age]!;
  const nodes = player.nodes ?? SEARCHES[strength]!;
  const [start, setStart] = useState(query.has("start") ? SFEN : "startpos");
  const [sfen, setSfen] = useState(query.get("start") ?? "");
  const [clock, setClock] = useState<Clock>("none");
  const [problem, setProblem] = useState<string | null>(null);
  const [starting, setStarting] = useState(false);

  const begin = async (move?: string) => {
    setStarting(true);
    setProblem(null);
    try {
      const game = await post<PlayedGame>("play", {
        player: player.id,
        side: side === "random" ? (Math.random() < 0.5 ? "black" : "white") : side,
        nodes,
        start: start === SFEN ? sfen.trim() : start,
        clock: CLOCKS[clock],
      } satisfies NewGame);
      if (move) await post<PlayedGame>(`${path("play", game.id)}/move`, { move });
      go(link(["play", game.id]));
    } catch (error) {
      setProblem(error instanceof ApiError ? error.message : String(error));
      setStarting(false);
    }
  };
  const submit = (event: Event) => {
    event.preventDefault();
    begin();
  };
  const chosen = start === SFEN ? sfen.trim() : info.handicaps.find(({ name }) => name === start)?.sfen;
  const preview = chosen || START;
  const yours = preview.split(/\s+/)[1] === side[0];
  return (
    <div class="game-layout">
      <Preview sfen={preview} side={side} starting={starting} onMove={begin} />
      <form class="card side stack" onSubmit={submit} aria-label="New game">
        <h1>Play</h1>
        <p class="muted" role="status">
          {starting ? "Setting up the pieces…" : yours ? "Move a piece to begin, or choose first." : "Choose, and start the game."}
        </p>
        <label>
          <span>Opponent</span>
          <select
            value={opponent.id}
            onChange={(event) => {
              const next = opponents.find(({ id }) => id === event.currentTarget.value)!;
              setOpponent(next);
              setAge(next.players.length - 1);
              setStrength(3);
            }}
          >
            {opponents.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
        {!opponent.levels && opponent.players.length > 1 && (
          <label>
            <span>
              Trained for <span class="muted">{short(player.steps)} steps</span>
            </span>
            <input
              type="range"
              min={0}
              max={opponent.players.length - 1}
              value={age}
              aria-valuetext={`${count(player.steps)} steps`}
              onInput={(event) => setAge(Number(event.currentTarget.value))}
            />
          </label>
        )}
        <Choice
          label="You play"
          value={side}
          onChange={setSide}
          options={[["black", "☗ Black"], ["white", "☖ White"], ["random", "Either"]]}
        />
        <label>
          <span>
            Strength <span class="muted">{strengthText(player, nodes)}</span>
          </span>
          <input
            type="range"
            min={0}
            max={(opponent.levels ? opponent.players : SEARCHES).length - 1}
            value={strength}
            aria-valuetext={strengthText(player, nodes)}
            onInput={(event) => setStrength(Number(event.currentTarget.value))}
          />
          {player.elo && <EloText elo={player.elo} />}
        </label>
        <label>
          <span>Start</span>
          <select value={start} onChange={(event) => setStart(event.currentTarget.value)}>
            <option value="startpos">Even game</option>
            {info.handicaps.filter(({ name }) => name !== "startpos").map(({ name, label }) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
            <option value={SFEN}>A position (SFEN)</option>
          </select>
        </label>
        {start === SFEN && (
          <label>
            <span>SFEN</span>
            <textarea rows={3} value={sfen} spellcheck={false} onInput={(event) => setSfen(event.currentTarget.value)} />
          </label>
        )}
        <label>
          <span>Clock</span>
          <select value={clock} onChange={(event) => setClock(event.currentTarget.value as Clock)}>
            <option value="none">None</option>
            <option value="0+30">30 seconds a move</option>
            <option value="5+10">5 minutes, then 10 seconds a move</option>
            <option value="10+30">10 minutes, then 30 seconds a move</option>
          </select>
        </label>
        {problem && (
          <p class="note error" role="alert">
            {sentence(problem)}
          </p>
        )}
        <Button kind="main" type="submit" disabled={starting}>
          Start the game
        </Button>
      </form>
    </div>
  );
}

function strengthText(player: PlayerRow, nodes: number): string {
  const how = nodes === 0 ? "instinct, no search" : `${count(nodes)} positions a move`;
  return player.nodes === null ? how : `${player.label}: ${how}`;
}

function EloText({ elo }: { elo: Elo }) {
  return (
    <small class="muted">
      Elo <b>{count(elo.rating)}</b>, measured between {count(elo.low)} and {count(elo.high)}; random moves have 0
    </small>
  );
}

interface Opponent {
  id: string;
  name: string;
  /** Are they levels, the weakest one first, or one network at different times, the youngest first? */
  levels: boolean;
  players: PlayerRow[];
}

/** Keisei with its levels, and each run with its whole life. */
function opponentsOf(players: PlayerRow[]): Opponent[] {
  const levels = players.filter(({ nodes }) => nodes !== null);
  const found = new Map<string, Opponent>();
  for (const player of players) {
    const [, name] = /^run\/(.*)\/[^/]*$/.exec(player.id) ?? [];
    if (name === undefined) continue;
    const opponent = found.get(name) ?? { id: `run/${name}`, name, levels: false, players: [] };
    opponent.players.unshift(player);
    found.set(name, opponent);
  }
  return [{ id: "levels", name: "Keisei", levels: true, players: levels }, ...found.values()];
}

interface PreviewProps {
  sfen: string;
  side: Side | "random";
  starting: boolean;
  onMove: (usi: string) => void;
}

/** The position that the game will start from; whoever moves first there begins with that move. */
function Preview({ sfen, side, starting, onMove }: PreviewProps) {
  const wanted = useSettled(sfen);
  const { data, error } = useFetch<PositionAnswer>(`position?sfen=${encodeURIComponent(wanted)}`);
  if (error || !data) return <Waiting error={error} what="this position" />;
  const yours = data.position.turn === side && !starting;
  return (
    <Board
      position={data.position}
      bottom={side === "white" ? "white" : "black"}
      legal={yours ? data.legal : undefined}
      onMove={onMove}
      label="The start of the game"
    />
  );
}

/** A value that has not changed for a moment: what is being typed is not asked for. */
function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), 250);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
