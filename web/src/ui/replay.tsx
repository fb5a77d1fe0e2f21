/** Stepping through the moves of a game: buttons, a slider and keys. */
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { link } from "../router";
import { Button } from "./parts";
import { CopyLink } from "./share";

interface Props {
  ply: number;
  last: number;
  onShow: (ply: number) => void;
}

/** Right below the board, so that a phone shows both. */
export function ReplayControls({ ply, last, onShow }: Props) {
  const [playing, setPlaying] = useState(false);
  const running = playing && ply < last;
  const show = (next: number) => {
    setPlaying(false);
    onShow(next);
  };
  useEffect(() => {
    if (!running) return;
    const timer = setTimeout(() => onShow(ply + 1), 700);
    return () => clearTimeout(timer);
  }, [running, ply]);
  return (
    <div class="replay">
      <div class="controls" role="group" aria-label="Replay">
        <Button icon="first" label="To the start" disabled={ply === 0} onClick={() => show(0)} />
        <Button icon="previous" label="One move back" disabled={ply === 0} onClick={() => show(ply - 1)} />
        <Button
          kind="main"
          icon={running ? "pause" : "play"}
          label={running ? "Pause" : "Play the moves"}
          onClick={() => {
            if (ply >= last) onShow(0);
            setPlaying(!running);
          }}
        />
        <Button icon="next" label="One move on" disabled={ply === last} onClick={() => show(ply + 1)} />
        <Button icon="last" label="To the end" disabled={ply === last} onClick={() => show(last)} />
      </div>
      <label class="ply">
        <span class="unseen">Move</span>
        <input type="range" min={0} max={last} value={ply} onInput={(event) => show(Number(event.currentTarget.value))} />
        <b class="numbers">
          {ply} / {last}
        </b>
      </label>
    </div>
  );
}

/** Left and right, Home and End, and `f` to turn the board. */
export function useReplayKeys({ ply, last, onShow }: Props, flip: () => void) {
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || target.matches("input, select, textarea")) return;
      const action = {
        ArrowLeft: () => onShow(ply - 1),
        ArrowRight: () => onShow(ply + 1),
        Home: () => onShow(0),
        End: () => onShow(last),
        f: flip,
      }[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [ply, last]);
}

interface ToolsProps {
  sfen: string;
  record: (format: string) => string; // the address of the game's record
  onFlip: () => void;
}

/** What can be done with the position that is shown, and with the game. */
export function GameTools({ sfen, record, onFlip }: ToolsProps) {
  return (
    <div class="tools">
      <Button kind="quiet" icon="flip" onClick={onFlip}>
        Flip
      </Button>
      <CopyLink address={link(["position"], { sfen })} />
      <a class="button quiet" href={link(["play"], { start: sfen })}>
        Play from here
      </a>
      <a class="button plain" href={record("kif")} download>
        KIF
      </a>
      <a class="button plain" href={record("csa")} download>
        CSA
      </a>
    </div>
  );
}
