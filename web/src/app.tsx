/** The frame of all pages: the bar on top, and the page that the address names. */
import { useEffect } from "preact/hooks";
import { OUTLINES } from "./board/outlines";
import { PieceDefinitions } from "./board/pieces";
import { GamePage } from "./pages/game";
import { GamesPage } from "./pages/games";
import { PlayPage } from "./pages/play";
import { PlayingPage } from "./pages/playing";
import { PositionPage } from "./pages/position";
import { ReviewPage } from "./pages/review";
import { RunPage } from "./pages/run";
import { RunsPage } from "./pages/runs";
import { YoursPage } from "./pages/yours";
import { link, type Route, route } from "./router";
import { useStore } from "./store";
import { SettingsMenu } from "./ui/settings";
import { Empty } from "./ui/parts";

const PAGES: [string, string][] = [
  ["runs", "Runs"],
  ["games", "Games"],
  ["worlds", "Worlds"],
  ["play", "Play"],
];

export function App() {
  const here = useStore(route);
  const section = here.parts[0] ?? "runs";
  const entry = { yours: "games", review: "games" }[section] ?? section;
  useEffect(() => {
    const name = here.parts[1] ?? PAGES.find(([id]) => id === entry)?.[1] ?? "Keisei";
    document.title = `${name} · Keisei`;
    document.querySelector("main")?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [here.parts.join("/")]);
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to content
      </a>
      <PieceDefinitions />
      <header class="bar">
        <a class="logo" href={link(["runs"])} aria-label="Keisei: to the runs">
          <Logo />
          <span>Keisei</span>
        </a>
        <nav aria-label="Pages">
          {PAGES.map(([id, text]) => (
            <a key={id} href={link([id])} aria-current={entry === id ? "page" : undefined}>
              {text}
            </a>
          ))}
        </nav>
        <SettingsMenu />
      </header>
      <main id="main" tabIndex={-1}>
        <Page here={here} />
      </main>
    </>
  );
}

function Page({ here: { parts, query } }: { here: Route }) {
  const [section = "runs", first, second] = parts;
  if (section === "worlds") return <RunsPage query={query} kind="world" />;
  if (section === "runs") return first ? <RunPage key={first} name={first} /> : <RunsPage query={query} />;
  if (section === "games" && first && second) {
    return <GamePage key={`${first}/${second}`} run={first} id={second} query={query} />;
  }
  if (section === "games") return <GamesPage query={query} />;
  if (section === "yours") return <YoursPage query={query} />;
  if (section === "play") return first ? <PlayingPage key={first} id={first} /> : <PlayPage query={query} />;
  if (section === "review" && first) return <ReviewPage key={first} id={Number(first)} query={query} />;
  if (section === "position") return <PositionPage query={query} />;
  return (
    <Empty title="There is no such page">
      <p>
        <a href={link(["runs"])}>To the runs</a>
      </p>
    </Empty>
  );
}

function Logo() {
  return (
    <svg viewBox="-46 -52 92 106" aria-hidden="true">
      <use href="#body-up" />
      <path d={OUTLINES["形"]} transform="translate(0 4) scale(.58 .64)" fill="#1c120a" />
    </svg>
  );
}

function skip(event: Event) {
  event.preventDefault(); // the hash is the address of the page
  document.getElementById("main")?.focus();
}
