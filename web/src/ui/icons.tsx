/** Small line drawings for buttons; the button's label says what they mean. */
const PATHS = {
  sun: "M12 4V2M12 22v-2M4 12H2M22 12h-2M6.3 6.3 4.9 4.9M19.1 19.1l-1.4-1.4M6.3 17.7l-1.4 1.4M19.1 4.9l-1.4 1.4M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8Z",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5Z",
  flip: "M7 4v14M7 4 3.5 7.5M7 4l3.5 3.5M17 20V6M17 20l3.5-3.5M17 20l-3.5-3.5",
  undo: "M4 9h10a6 6 0 0 1 0 12h-3M4 9l5-5M4 9l5 5",
  flag: "M5 21V4c5-3 9 3 14 0v10c-5 3-9-3-14 0",
  bulb: "M9 18h6M10 21h4M12 3a6 6 0 0 0-3.5 10.9c.6.5 1 1.2 1 2.1h5c0-.9.4-1.6 1-2.1A6 6 0 0 0 12 3Z",
  link: "M10 14a4 4 0 0 0 6 .4l3-3a4 4 0 0 0-5.7-5.7l-1.7 1.7M14 10a4 4 0 0 0-6-.4l-3 3a4 4 0 0 0 5.7 5.7l1.7-1.7",
  bin: "M4 7h16M9 7V4h6v3M6.5 7l1 13h9l1-13M10 11v5M14 11v5",
  deeper: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM15.2 15.2 21 21M10.5 7.5v6M7.5 10.5h6",
  play: "M7 4.5v15l12-7.5Z",
  pause: "M8 5v14M16 5v14",
  first: "M18 5l-8 7 8 7ZM6 5v14",
  previous: "M16 5l-9 7 9 7Z",
  next: "M8 5l9 7-9 7Z",
  last: "M6 5l8 7-8 7ZM18 5v14",
};

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
