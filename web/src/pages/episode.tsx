/** An episode of a world, played by the newest checkpoint: play, pause, scrub. */
import { useEffect, useRef, useState } from "preact/hooks";
import { type Episode, path, type RunDetail } from "../api";
import { number } from "../format";
import { useFetch } from "../loading";
import { Button, Empty, Waiting } from "../ui/parts";

const TURNS_PER_SECOND = 8;
const CELL = 28;
const DIAMOND = [[1, 0], [0, 1], [-1, 0]] as const;

type Thing = Episode["legend"][number];

export function EpisodeCard({ run }: { run: RunDetail }) {
  const [seed, setSeed] = useState(0);
  const ready = run.checkpoints.length > 0;
  const { data, error, loading, reload } = useFetch<Episode>(
    ready ? `${path("runs", run.name, "episode")}?seed=${seed}` : null,
  );
  return (
    <section class="card episode" aria-label="Episode">
      <div class="card-head">
        <h2>
          Episode <span class="muted">{seed + 1}</span>
        </h2>
        <Button kind="quiet" disabled={!ready || (loading && !error)} onClick={() => setSeed(seed + 1)}>
          Another
        </Button>
      </div>
      {!ready ? (
        <Empty title="No checkpoint yet">
          <p>Once the run has saved one, its agents are shown here.</p>
        </Empty>
      ) : error || !data ? (
        <Waiting error={error} what="the episode" onRetry={reload} />
      ) : (
        <EpisodePlayer key={seed} episode={data} />
      )}
    </section>
  );
}

function EpisodePlayer({ episode }: { episode: Episode }) {
  const last = episode.frames.length - 1;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const [turn, setTurn] = useState(0);
  const [playing, setPlaying] = useState(!still);
  useEffect(() => {
    if (!playing || turn >= last) return;
    const timer = setTimeout(() => !document.hidden && setTurn((t) => t + 1), 1000 / TURNS_PER_SECOND);
    const wake = () => !document.hidden && setTurn((t) => t + 1);
    document.addEventListener("visibilitychange", wake);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", wake);
    };
  }, [playing, turn, last]);
  const atEnd = turn >= last;
  return (
    <>
      <WorldPicture episode={episode} turn={turn} />
      <div class="scrub">
        <Button
          icon={playing && !atEnd ? "pause" : "play"}
          label={playing && !atEnd ? "Pause" : "Play"}
          onClick={() => {
            if (atEnd) setTurn(0);
            setPlaying(atEnd || !playing);
          }}
        />
        <input
          type="range"
          aria-label="Turn"
          min={0}
          max={last}
          value={turn}
          onInput={(event) => {
            setPlaying(false);
            setTurn(Number(event.currentTarget.value));
          }}
        />
        <b class="numbers">
          {turn} / {last}
        </b>
      </div>
      <Returns episode={episode} turn={turn} />
    </>
  );
}

/** What each agent has got up to this turn. */
function Returns({ episode, turn }: { episode: Episode; turn: number }) {
  const sums = episode.returns.map((_, agent) =>
    episode.frames.slice(0, turn + 1).reduce((sum, frame) => sum + (frame.rewards[agent] ?? 0), 0),
  );
  const most = Math.max(1e-9, ...episode.returns.map(Math.abs), ...sums.map(Math.abs));
  return (
    <ol class="returns" aria-label="Returns per agent">
      {sums.map((sum, agent) => (
        <li key={agent}>
          <i class="agent-dot" style={{ background: colorOf(episode, agent) }} />
          <span>Agent {agent}</span>
          <span class="bar-of">
            <span style={{ width: `${(Math.max(0, sum) / most) * 100}%`, background: colorOf(episode, agent) }} />
          </span>
          <b class="numbers">{number(sum)}</b>
        </li>
      ))}
    </ol>
  );
}

const colorOf = ({ agent_colors }: Episode, agent: number) => agent_colors[agent % agent_colors.length]!;

function WorldPicture({ episode, turn }: { episode: Episode; turn: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const brush = canvas.current?.getContext("2d");
    if (brush) drawFrame(brush, episode, turn);
  }, [episode, turn]);
  return (
    <canvas
      ref={canvas}
      class="world"
      width={episode.width * CELL}
      height={episode.height * CELL}
      role="img"
      aria-label={`The world at turn ${turn}`}
    />
  );
}

function drawFrame(brush: CanvasRenderingContext2D, episode: Episode, turn: number) {
  const frame = episode.frames[turn];
  if (!frame) return;
  const { legend } = episode;
  const eachCell = (cells: number[][], draw: (thing: Thing, x: number, y: number) => void) =>
    cells.forEach((row, y) =>
      row.forEach((index, x) => {
        const thing = legend[index];
        if (thing) draw(thing, x * CELL, y * CELL);
      }),
    );
  eachCell(frame.ground, (thing, x, y) => {
    brush.fillStyle = thing.color;
    brush.fillRect(x, y, CELL, CELL);
  });
  eachCell(frame.cells, (thing, x, y) => drawThing(brush, thing, x, y));
  frame.agents.forEach(([row, column], agent) =>
    drawAgent(brush, { color: colorOf(episode, agent), agent, row, column }),
  );
}

function drawThing(brush: CanvasRenderingContext2D, { name, color, shape }: Thing, x: number, y: number) {
  if (name === "agent") return; // agents have colours of their own
  brush.fillStyle = color;
  if (shape === "square") {
    brush.fillRect(x, y, CELL, CELL);
    return;
  }
  const [cx, cy, reach] = [x + CELL / 2, y + CELL / 2, CELL * 0.34];
  brush.beginPath();
  if (shape === "circle") brush.arc(cx, cy, reach * 0.88, 0, 7);
  else {
    brush.moveTo(cx, cy - reach);
    for (const [dx, dy] of DIAMOND) brush.lineTo(cx + dx * reach, cy + dy * reach);
    brush.closePath();
  }
  brush.fill();
  brush.strokeStyle = "#0005";
  brush.stroke();
}

interface Body {
  color: string;
  agent: number;
  row: number;
  column: number;
}

function drawAgent(brush: CanvasRenderingContext2D, { color, agent, row, column }: Body) {
  const [x, y] = [(column + 0.5) * CELL, (row + 0.5) * CELL];
  brush.fillStyle = color;
  brush.beginPath();
  brush.arc(x, y, CELL * 0.42, 0, 7);
  brush.fill();
  brush.fillStyle = "#fff";
  brush.font = `600 ${CELL * 0.5}px system-ui, sans-serif`;
  brush.textAlign = "center";
  brush.textBaseline = "middle";
  brush.fillText(String(agent), x, y + 1);
}
