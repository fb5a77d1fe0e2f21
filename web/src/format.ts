/** Numbers and times for people. */

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export const NONE = "–";

type Maybe = number | null | undefined;

export function count(value: Maybe): string {
  return value == null ? NONE : whole.format(value);
}

/** 1234567 as 1.23 M. */
export function short(value: Maybe): string {
  if (value == null) return NONE;
  const size = Math.abs(value);
  if (size >= 1e9) return `${trim(value / 1e9)} G`;
  if (size >= 1e6) return `${trim(value / 1e6)} M`;
  if (size >= 1e4) return `${trim(value / 1e3)} k`;
  if (size >= 100 || Number.isInteger(value)) return whole.format(value);
  return number(value);
}

function trim(value: number): string {
  return String(Number(value.toPrecision(3)));
}

/** A measured number with three digits that count. */
export function number(value: Maybe): string {
  if (value == null) return NONE;
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1000) return whole.format(value);
  if (size < 0.001) return value.toExponential(1).replace("e-", "e−").replace(/^-/, "−");
  return value.toPrecision(3).replace(/^-/, "−");
}

/** A number on an axis: no more digits than it needs. */
export function tick(value: number): string {
  return Math.abs(value) >= 1000 ? short(value) : String(Number(value.toPrecision(6))).replace(/^-/, "−");
}

export function percent(value: Maybe): string {
  if (value == null) return NONE;
  return value > 0 && value < 0.005 ? "< 1 %" : `${Math.round(value * 100)} %`;
}

/** What a move lost: whole percents that it reached, since marks begin at some of them. */
export function lossPercent(loss: number): string {
  return loss < 0.01 ? "< 1 %" : `${Math.floor(loss * 100 + 1e-6)} %`;
}

/** A side's chance to win, from Black's value of -1 to 1. */
export function chance(value: Maybe, side: "black" | "white"): number | null {
  return value == null ? null : (1 + (side === "black" ? value : -value)) / 2;
}

/** Both sides' chances to win, from Black's value; as they are shown, they make 100 %. */
export function chances(value: Maybe): string {
  if (value == null) return NONE;
  const black = chance(value, "black")!;
  const white = chance(value, "white")!;
  return `☗ ${percent(black)}  ☖ ${percent(white < 0.005 ? white : 1 - Math.round(black * 100) / 100)}`;
}

/** What a rating is of: a network plays differently with search and without. */
export function howItPlays(nodes: number | null): string {
  return nodes === null ? "policy alone" : `${count(nodes)} nodes`;
}

export function duration(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 36 * 3600) return `${(seconds / 3600).toFixed(1)} h`;
  return `${(seconds / 86400).toFixed(1)} days`;
}

export function ago(time: Maybe): string {
  if (time == null) return NONE;
  const seconds = Math.max(0, Date.now() / 1000 - time);
  return seconds < 10 ? "just now" : `${duration(seconds)} ago`;
}

export function clockTime(seconds: number): string {
  const left = Math.max(0, Math.ceil(seconds));
  return `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
}

export function timeOfDay(time: number): string {
  return new Date(time * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
}
