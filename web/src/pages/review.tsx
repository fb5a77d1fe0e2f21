/** A game that is analysed while one looks: what each move lost, what was better, and a board to try it on. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, type Judged, type Judgement, type KeptGame, path, post, type PositionAnswer, request, type Side, type VariationAnswer } from "../api";
import { Board } from "../board/board";
import type { Arrow } from "../board/marks";
import { otherSide } from "../board/sfen";
import { count } from "../format";
import { useFetch } from "../loading";
import { link, replace } from "../router";
import { MoveList } from "../ui/moves";
import { Button, sentence, Waiting } from "../ui/parts";
import { GameTools, ReplayControls, useReplayKeys } from "../ui/replay";
import { analysisArrows, AnalysisPanel, useAnalysis } from "./analysis";
import { GameTree } from "./game_tree";
import { resultOf } from "./games";
import { retryArrows, RetryPanel, useRetry } from "./retry";
import { Advice, Chances, Comment, ReviewState, Variations, Worst } from "./review_parts";
import { useReview } from "./use_review";
import { playerOf } from "./yours";

export function ReviewPage({ id, query }: { id: number; query: URLSearchParams }) {
  const { data, error, reload } = useFetch<KeptGame>(path("kept", id));
  const [changed, setChanged] = useState<KeptGame | null>(null);
  const game = changed ?? data;
  if (!game) {
    return (
      <>
        <h1>Review</h1>
        <Waiting error={error} what="this game" onRetry={reload} />
      </>
    );
  }
  return <Reviewing game={game} start={Number(query.get("node") ?? 0) || 0} onChange={setChanged} />;
}

interface Props {
  game: KeptGame;
  start: number;
  onChange: (game: KeptGame) => void;
}

function Reviewing({ game, start, onChange }: Props) {
  const tree = useMemo(() => new GameTree(game), [game]);
  const [node, setNode] = useState(tree.has(start) ? start : 0);
  const [bottom, setBottom] = useState<Side>(game.side ?? "black");
  const [problem, setProblem] = useState<string | null>(null);
  const review = useReview(game.id);
  const { retry, begin } = useRetry(game, review, setNode);
  const shown = retry ? retry.ply : node;
  const { here, loss } = useJudged(tree, shown, review.judged);
  const analysis = useAnalysis(game.id, node, !retry);
  const line = tree.line(shown);
  const ply = line.indexOf(shown);
  const fork = Math.max(...line.slice(0, ply + 1).filter((one) => tree.isMain(one))); // where the main line is left
  const show = (next: number) => {
    retry?.stop();
    setNode(next);
  };
  const step = (next: number) => show(line[Math.max(0, Math.min(line.length - 1, next))]!);
  const column = useRef<HTMLDivElement>(null);
  const look = (next: number) => {
    show(next);
    column.current?.scrollIntoView({ block: "nearest" }); // on a phone, what was clicked is below the board
  };
  const flip = () => setBottom(otherSide);
  useReplayKeys({ ply, last: line.length - 1, onShow: step }, flip);
  useEffect(() => replace(link(["review", game.id], node ? { node } : {})), [node]);
  const position = tree.position(shown);
  const legal = useFetch<PositionAnswer>(`position?sfen=${encodeURIComponent(position.sfen)}`);
  const losses = useMemo(() => review.judged.slice(1).map((one) => one.loss), [review.judged]);
  const arrows = useMemo(
    () => {
      if (retry) return retryArrows(retry, review);
      return analysis.found ? analysisArrows(analysis.found) : arrowsAt(tree, shown, here);
    },
    [retry, tree, shown, here, analysis.found],
  );
  const act = async (work: Promise<void>) => {
    setProblem(null);
    await work.catch((error) => setProblem(error instanceof ApiError ? error.message : String(error)));
  };
  const home = path("kept", game.id);
  const vary = (move: string) =>
    act(
      post<VariationAnswer>(`${home}/variation`, { parent: node, move }).then((answer) => {
        onChange(answer.game);
        setNode(answer.node);
      }),
    );
  const prune = () => {
    setNode(tree.parent(node));
    act(request<KeptGame>(`${home}/variation/${node}`, { method: "DELETE" }).then(onChange));
  };
  const comment = (text: string) => act(post<KeptGame>(`${home}/comment`, { node, text }).then(onChange));
  const record = (format: string) => `api/${path("kept", game.id, "record")}?format=${format}`;
  return (
    <>
      <p class="crumb">
        <a href={link(["yours"])}>Your games</a>
      </p>
      <div class={`game-layout${retry ? " retrying" : ""}`}>
        <div class="board-column" ref={column}>
          <Board
            position={position}
            bottom={retry ? retry.state.side : bottom}
            arrows={arrows}
            legal={legal.data?.position.sfen === position.sfen ? legal.data.legal : undefined}
            onMove={retry ? retry.attempt : vary}
            label={`Review, move ${ply} of ${line.length - 1}`}
          />
          <ReplayControls ply={ply} last={line.length - 1} onShow={step} />
        </div>
        <aside class="card side">
          <h1 class="players">
            <span class={game.winner === "black" ? "won" : undefined}>☗ {playerOf(game, "black")}</span>
            <span class={game.winner === "white" ? "won" : undefined}>☖ {playerOf(game, "white")}</span>
          </h1>
          <p class="muted">
            {game.reason === null ? "Not finished" : resultOf({ winner: game.winner, reason: game.reason })} after{" "}
            {count(tree.last)} moves
          </p>
          <ReviewState review={review} />
          {retry ? (
            <RetryPanel retry={retry} game={game} review={review} />
          ) : (
            <>
              <Chances review={review} here={here} ply={fork} losses={losses} onShow={show} />
              <Advice tree={tree} node={node} here={here} loss={loss} brief={analysis.found !== null} />
              <AnalysisPanel analysis={analysis} turn={position.turn} onMove={vary} />
              <Worst game={game} review={review} onShow={look} onRetry={begin} />
              <MoveList moves={game.moves} ply={fork} onChoose={look} losses={losses} />
              <Variations tree={tree} node={node} onShow={look} />
              {!tree.isMain(node) && <Button onClick={prune}>Remove this variation</Button>}
              <Comment key={`${node} ${tree.comment(node)}`} text={tree.comment(node)} onSave={comment} />
            </>
          )}
          {problem && (
            <p class="note error" role="alert">
              {sentence(problem)}
            </p>
          )}
          <GameTools sfen={position.sfen} record={record} onFlip={flip} />
        </aside>
      </div>
    </>
  );
}

/** What the search says of a node; those beside the main line are judged when they are looked at. */
function useJudged(tree: GameTree, node: number, judged: Judged[]) {
  const [beside, setBeside] = useState<Record<number, Judgement>>({});
  const main = tree.isMain(node);
  useEffect(() => {
    if (main || beside[node]) return;
    post<Judgement>(`${path("kept", tree.game.id)}/judge`, { moves: tree.movesTo(node) }).then(
      (answer) => setBeside((old) => ({ ...old, [node]: answer })),
      () => {}, // the variation is there, without advice
    );
  }, [node]);
  if (main) return { here: judged[node], loss: judged[node + 1]?.loss };
  return { here: beside[node]?.judged, loss: beside[node]?.judged.loss };
}

/** The best line, and what was played instead. */
function arrowsAt(tree: GameTree, node: number, here: Judged | undefined): Arrow[] {
  if (!here) return [];
  const played = tree.isMain(node) ? tree.game.moves[node]?.usi : undefined;
  const line = here.line.slice(0, 3).map(({ usi }, i) => ({ usi, weight: 1 - i / 2, best: i === 0 }));
  const other = played && played !== here.best ? [{ usi: played, weight: 0.5, played: true }] : [];
  return [...other, ...line.filter(({ usi }, i) => i === 0 || usi !== played)];
}
