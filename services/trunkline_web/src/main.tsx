import { render } from "solid-js/web";
import { beInstalled } from "./store/installed";
import { flush } from "./store/outbox";
import { beNotified } from "./store/push";
import { begin, onConnected } from "./store/world";
import { taken } from "./seal/taken";
import { App } from "./view/App";
import "./style/base.css";
import "./style/shell.css";
import "./style/transcript.css";
import "./style/asks.css";

// A page that stayed open over a new build asks for files that are gone: the new page has new names.
const RELOADED = "trunkline.reloaded";
addEventListener("vite:preloadError", () => {
  if (Date.now() - Number(sessionStorage.getItem(RELOADED)) < 60_000) return;
  sessionStorage.setItem(RELOADED, String(Date.now()));
  location.reload();
});

const place = document.getElementById("app");
const pairing = taken();
if (pairing !== undefined) {
  void import("./view/Pair").then(({ Pair }) => place && render(() => <Pair url={pairing} />, place));
} else {
  if (place !== null) render(() => <App />, place);
  onConnected(flush);
  beNotified();
  beInstalled();
  void begin();
}
