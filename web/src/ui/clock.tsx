/** A clock that runs in the page between two answers of the server, who keeps the time. */
import { useEffect, useRef } from "preact/hooks";
import type { PlayedGame, Side } from "../api";
import { clockTime } from "../format";

interface Props {
  clock: NonNullable<PlayedGame["clock"]>;
  side: Side;
  onExpire: () => void;
}

export function ClockFace({ clock, side, onExpire }: Props) {
  const face = useRef<HTMLTimeElement>(null);
  const running = clock.running === side;
  useEffect(() => {
    const start = performance.now();
    const whole = clock[side] + clock.byoyomi;
    let asked = false;
    const show = () => {
      const passed = running ? (performance.now() - start) / 1000 : 0;
      const main = clock[side] - passed;
      const left = main > 0 ? main : whole - passed;
      if (face.current) {
        face.current.textContent = clockTime(left);
        face.current.classList.toggle("low", running && main <= 0 && left < 10);
      }
      if (running && whole - passed <= 0 && !asked) {
        asked = true;
        onExpire();
      }
    };
    show();
    if (!running) return;
    const timer = setInterval(show, 250);
    return () => clearInterval(timer);
  }, [clock, side]);
  return <time ref={face} class={`clock${running ? " running" : ""}`} />;
}
