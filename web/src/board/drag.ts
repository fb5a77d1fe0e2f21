/** Dragging a piece with mouse, pen or finger. A press without movement stays a click. */
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

interface Options {
  root: RefObject<HTMLDivElement | null>;
  canDrag: (origin: string) => boolean;
  onStart: (origin: string) => void;
  /** `square` is null beside the board. */
  onDrop: (origin: string, square: string | null) => void;
}

const THRESHOLD = 5; // pixels: a shaky click is no drag

export function usePieceDrag({ root, canDrag, onStart, onDrop }: Options) {
  const [origin, setOrigin] = useState<string | null>(null);
  const ghost = useRef<SVGSVGElement>(null);
  const down = useRef<{ origin: string; x: number; y: number; id: number; moving: boolean } | null>(null);
  const at = useRef({ x: 0, y: 0 });

  const place = () => {
    const board = root.current?.querySelector(".squares");
    if (!ghost.current || !board) return;
    const width = board.clientWidth / 9;
    const { style } = ghost.current;
    style.width = `${width}px`;
    style.transform = `translate(${at.current.x - width / 2}px, ${at.current.y - width * 0.62}px)`;
  };
  useEffect(place, [origin]);

  const end = () => {
    down.current = null;
    setOrigin(null);
  };
  const handlers = {
    onPointerDown: (event: PointerEvent) => {
      const element = (event.target as Element).closest<HTMLElement>("[data-square],[data-hand]");
      const from = element?.dataset.square ?? element?.dataset.hand;
      if (!from || event.button !== 0 || !canDrag(from)) return;
      down.current = { origin: from, x: event.clientX, y: event.clientY, id: event.pointerId, moving: false };
      // A finger is captured by the square it touched; let it go, so that others are seen.
      element?.releasePointerCapture?.(event.pointerId);
    },
    onPointerMove: (event: PointerEvent) => {
      const start = down.current;
      if (!start || event.pointerId !== start.id) return;
      at.current = { x: event.clientX, y: event.clientY };
      if (!start.moving && Math.hypot(event.clientX - start.x, event.clientY - start.y) > THRESHOLD) {
        start.moving = true;
        root.current?.setPointerCapture(start.id);
        onStart(start.origin);
        setOrigin(start.origin);
      }
      place();
    },
    onPointerUp: (event: PointerEvent) => {
      const start = down.current;
      if (!start || event.pointerId !== start.id) return;
      end();
      if (!start.moving) return;
      // The click that follows would press the square again.
      addEventListener("click", swallow, true);
      setTimeout(() => removeEventListener("click", swallow, true));
      onDrop(start.origin, squareUnder(root.current, event.clientX, event.clientY));
    },
    onPointerCancel: end,
  };
  return { origin, ghost, handlers };
}

const swallow = (event: Event) => event.stopPropagation();

function squareUnder(root: HTMLElement | null, x: number, y: number): string | null {
  for (const element of document.elementsFromPoint(x, y)) {
    const square = (element as HTMLElement).dataset?.square;
    if (square && root?.contains(element)) return square;
  }
  return null;
}
