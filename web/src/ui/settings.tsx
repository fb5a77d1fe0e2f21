/** What a reader may choose: colours, pieces, notation, sound. */
import { useEffect, useRef, useState } from "preact/hooks";
import { PieceIcon } from "../board/pieces";
import { choose, type PieceSet, settings, useDark, useStore } from "../store";
import { Button, Choice } from "./parts";

const SETS: [PieceSet, string][] = [
  ["kanji", "Kanji"],
  ["kanji2", "Two kanji"],
  ["western", "Western"],
];

export function SettingsMenu() {
  const [open, setOpen] = useState(false);
  const { theme, pieces, notation, sound } = useStore(settings);
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const close = (event: Event) => {
      const outside = event.type === "pointerdown" && !root.current?.contains(event.target as Node);
      if (outside || (event as KeyboardEvent).key === "Escape") setOpen(false);
    };
    addEventListener("pointerdown", close);
    addEventListener("keydown", close);
    return () => {
      removeEventListener("pointerdown", close);
      removeEventListener("keydown", close);
    };
  }, [open]);
  const dark = useDark();
  return (
    <div class="settings" ref={root}>
      <Button
        kind="quiet"
        icon={dark ? "sun" : "moon"}
        label={dark ? "Light colours" : "Dark colours"}
        onClick={() => choose({ theme: dark ? "light" : "dark" })}
      />
      <button
        type="button"
        class="button quiet icon-only"
        aria-label="Settings"
        aria-expanded={open}
        title="Settings"
        onClick={() => setOpen(!open)}
      >
        <span class="set-icon">
          <PieceIcon piece={{ kind: "R", promoted: true, side: "black" }} set={pieces} />
        </span>
      </button>
      {open && (
        <div class="menu" role="dialog" aria-label="Settings">
          <Choice
            label="Pieces"
            value={pieces}
            onChange={(value) => choose({ pieces: value })}
            options={SETS.map(([value, text]) => [
              value,
              <>
                <PieceIcon piece={{ kind: "S", promoted: false, side: "black" }} set={value} />
                {text}
              </>,
            ])}
          />
          <Choice
            label="Notation"
            value={notation}
            onChange={(value) => choose({ notation: value })}
            options={[
              ["western", "P-7f"],
              ["japanese", "７六歩"],
            ]}
          />
          <Choice
            label="Colours"
            value={theme}
            onChange={(value) => choose({ theme: value })}
            options={[
              ["auto", "System"],
              ["light", "Light"],
              ["dark", "Dark"],
            ]}
          />
          <Choice
            label="Sound of moves"
            value={sound}
            onChange={(value) => choose({ sound: value })}
            options={[
              ["off", "Off"],
              ["on", "On"],
            ]}
          />
        </div>
      )}
    </div>
  );
}
