/** One position, from a link that somebody shared or an SFEN that somebody typed. */
import { useState } from "preact/hooks";
import type { PositionAnswer, Side } from "../api";
import { Board } from "../board/board";
import { otherSide } from "../board/sfen";
import { useFetch } from "../loading";
import { go, link } from "../router";
import { Button, Waiting } from "../ui/parts";
import { CopyLink } from "../ui/share";

const START = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1";

export function PositionPage({ query }: { query: URLSearchParams }) {
  const sfen = query.get("sfen") ?? START;
  return <PositionOf key={sfen} sfen={sfen} />;
}

function PositionOf({ sfen }: { sfen: string }) {
  const [bottom, setBottom] = useState<Side>("black");
  const [text, setText] = useState(sfen);
  const { data, error } = useFetch<PositionAnswer>(`position?sfen=${encodeURIComponent(sfen)}`);
  const submit = (event: Event) => {
    event.preventDefault();
    go(link(["position"], { sfen: text.trim() }));
  };
  return (
    <div class="game-layout">
      {data && !error ? (
        <Board position={data.position} bottom={bottom} label="Position" />
      ) : (
        <Waiting error={error} what="this position" />
      )}
      <aside class="card side">
        <h1>Position</h1>
        {data && !error && (
          <p class="muted">
            {data.position.turn === "black" ? "☗ Black" : "☖ White"} to move
            {data.legal.length === 0 ? "; there is no legal move" : `, ${data.legal.length} legal moves`}
            {data.position.check ? "; in check" : ""}
          </p>
        )}
        <form class="stack" onSubmit={submit}>
          <label>
            <span>SFEN</span>
            <textarea rows={3} value={text} spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} />
          </label>
          <Button type="submit">Show</Button>
        </form>
        <div class="tools">
          <Button kind="quiet" icon="flip" onClick={() => setBottom(otherSide)}>
            Flip
          </Button>
          <CopyLink address={link(["position"], { sfen })} />
          <a class="button main" href={link(["play"], { start: sfen })}>
            Play from here
          </a>
        </div>
      </aside>
    </div>
  );
}
