import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./style/base.css";
import "./style/parts.css";
import "./style/charts.css";
import "./style/board.css";
import "./style/pages.css";
import "./style/games.css";
import { App } from "./app";

// The server has put the token into a cookie by now; it should not stay in the history.
if (new URLSearchParams(location.search).has("token")) {
  history.replaceState(null, "", `${location.pathname}${location.hash}`);
}

render(<App />, document.getElementById("app")!);
