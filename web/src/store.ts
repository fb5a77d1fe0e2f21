/** What the reader chose, kept in this browser; and a store that components listen to. */
import { useEffect, useState } from "preact/hooks";

export class Store<T> {
  private listeners = new Set<(value: T) => void>();
  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set(value: T): void {
    if (value === this.current) return;
    this.current = value;
    for (const listener of [...this.listeners]) listener(value);
  }

  listen(listener: (value: T) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

export function useStore<T>(store: Store<T>): T {
  const [value, setValue] = useState(store.value);
  useEffect(() => {
    setValue(store.value);
    return store.listen(setValue);
  }, [store]);
  return value;
}

export type Theme = "auto" | "light" | "dark";
export type PieceSet = "kanji" | "kanji2" | "western";
export type Notation = "japanese" | "western";

export type Sound = "off" | "on";

export interface Settings {
  theme: Theme;
  pieces: PieceSet;
  notation: Notation;
  sound: Sound;
}

const KEY = "keisei";
const DEFAULTS: Settings = { theme: "auto", pieces: "kanji", notation: "western", sound: "off" };

function stored(): Settings {
  try {
    return { ...DEFAULTS, ...JSON.parse(localStorage.getItem(KEY) ?? "{}") };
  } catch {
    return DEFAULTS; // storage is off, or holds what an older page wrote
  }
}

export const settings = new Store<Settings>(stored());

export function choose(change: Partial<Settings>): void {
  settings.set({ ...settings.value, ...change });
  try {
    localStorage.setItem(KEY, JSON.stringify(settings.value));
  } catch {
    // Storage is off: the choice holds until the page is closed.
  }
  if (change.theme) document.documentElement.dataset.theme = change.theme;
}

const darkQuery = matchMedia("(prefers-color-scheme: dark)");

/** Whether the page is dark now; a component that uses it is drawn again when that changes. */
export function useDark(): boolean {
  const { theme } = useStore(settings);
  const [, turn] = useState(0);
  useEffect(() => {
    const listener = () => turn((n) => n + 1);
    darkQuery.addEventListener("change", listener);
    return () => darkQuery.removeEventListener("change", listener);
  }, []);
  return theme === "dark" || (theme === "auto" && darkQuery.matches);
}
