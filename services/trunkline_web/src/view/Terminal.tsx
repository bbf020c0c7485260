import { FitAddon } from "@xterm/addon-fit";
import { Terminal as Xterm } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { createSignal, For, onCleanup, onMount, Show } from "solid-js";
import { newViewer } from "../client/ids";
import { TerminalLink, type TerminalState } from "../client/terminal";
import { isClosed } from "../client/connection";
import { visible } from "../model/format";
import { connection, hello, may, onConnected, say, socketMaker, world } from "../store/world";
import { Icon } from "./Icon";
import { adopting } from "./sheets";

const KEYS: [string, string][] = [
  ["Esc", "\u001b"],
  ["Tab", "\t"],
  ["^C", "\u0003"],
  ["^D", "\u0004"],
  ["←", "\u001b[D"],
  ["↓", "\u001b[B"],
  ["↑", "\u001b[A"],
  ["→", "\u001b[C"],
  ["Enter", "\r"],
];

const DARK = { background: "#0b0e11", foreground: "#d7dde3", cursor: "#d7dde3" };
const LIGHT = { background: "#ffffff", foreground: "#1c2127", cursor: "#1c2127", selectionBackground: "#b6d7ff" };

/** A session's terminal, which several may look at and one types in. */
export function Terminal(props: { id: string }) {
  const [state, setState] = createSignal<TerminalState>({});
  const [mine, setMine] = createSignal(false);
  const [note, setNote] = createSignal("connecting …");
  const [problem, setProblem] = createSignal("");
  const [starting, setStarting] = createSignal(false);
  let place: HTMLDivElement | undefined;
  let link: TerminalLink | undefined;

  onMount(() => {
    if (place === undefined) return;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const theme = () => (dark.matches ? DARK : LIGHT);
    const terminal = new Xterm({
      fontFamily: getComputedStyle(place).fontFamily,
      fontSize: 13,
      scrollback: 5000,
      cursorBlink: true,
      screenReaderMode: true,
      theme: theme(),
    });
    const recolour = () => (terminal.options.theme = theme());
    dark.addEventListener("change", recolour);
    const fit = new FitAddon();
    terminal.loadAddon(fit);
    const into = place;
    const forget = adopting(() => terminal.open(into));
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const token = sessionStorage.getItem("token") ?? undefined;
    const made = new TerminalLink(`${scheme}://${location.host}/ws/terminal/${props.id}`, newViewer(), token, {
      print(data, reset) {
        if (reset !== undefined) {
          terminal.reset();
          terminal.resize(reset.columns, reset.rows);
        }
        terminal.write(data);
      },
      state(now, own) {
        setState(now);
        if (now.columns && now.rows && (now.columns !== terminal.cols || now.rows !== terminal.rows)) {
          terminal.resize(now.columns, now.rows);
        }
        if (own && !mine()) {
          sized();
          terminal.focus();
        }
        setMine(own);
      },
      note: setNote,
    }, socketMaker() as new (url: string) => WebSocket);
    link = made;
    terminal.onData((keys) => {
      if (mine()) made.type(keys);
    });
    /** Its size is the business of whoever types. */
    function sized(): void {
      const wanted = fit.proposeDimensions();
      if (wanted !== undefined && wanted.cols > 1) made.resize(wanted.cols, wanted.rows);
    }
    const watching = new ResizeObserver(() => {
      if (mine()) sized();
    });
    watching.observe(place);
    if (may("participant")) void start();
    const renewing = onConnected((lost) => made.renew(lost));
    const retry = (): void => {
      if (document.visibilityState !== "visible") return;
      made.renew();
      made.probe();
    };
    addEventListener("online", retry);
    document.addEventListener("visibilitychange", retry);
    onCleanup(() => {
      renewing();
      dark.removeEventListener("change", recolour);
      removeEventListener("online", retry);
      document.removeEventListener("visibilitychange", retry);
      watching.disconnect();
      made.end();
      terminal.dispose();
      forget();
    });
  });

  async function start(): Promise<void> {
    setProblem("");
    setStarting(true);
    try {
      await connection.call("terminal.open", { session: props.id });
    } catch (error) {
      // without a connection it is as it was, which the connection tells
      if (!isClosed(error)) setProblem(error instanceof Error ? error.message : String(error));
    } finally {
      setStarting(false);
    }
  }

  const writer = () => state().writer;
  const words = () => {
    if (note()) return note();
    if (!state().running) return "not running";
    const who = mine() ? "you type" : writer() ? `${writer()?.actor || "somebody"} types` : "nobody types";
    return may("participant") && state().writable !== false ? who : `${who}; you can only look`;
  };
  return (
    <section class="terminal" aria-label="Terminal">
      <header class="head">
        <a class="back" href={`/session/${props.id}`} aria-label="Back">
          <Icon name="back" />
        </a>
        <div class="title">
          <h1>{world.sessions[props.id]?.title ?? "Terminal"}</h1>
          <p class="meta" role="status">
            {words()}
          </p>
        </div>
        <div class="controls">
          <Show
            when={mine()}
            fallback={
              <Show when={may("participant") && state().running && state().writable !== false}>
                <button type="button" class="primary" onClick={() => link?.take(writer() !== null && writer() !== undefined)}>
                  {writer() ? "Take the keyboard" : "Type here"}
                </button>
              </Show>
            }
          >
            <button type="button" onClick={() => link?.release()}>
              Release
            </button>
          </Show>
        </div>
      </header>
      <Show when={!note() && !state().running}>
        <div class="idle" role="status">
          <p>{starting() ? "Starting …" : visible(problem()) || "The program of this terminal does not run."}</p>
          <Show when={may("participant")} fallback={<p class="hint">Starting it needs the role participant; yours is {hello()?.role}.</p>}>
            <button type="button" disabled={starting()} onClick={() => void start()}>
              Start it
            </button>
          </Show>
        </div>
      </Show>
      <div class="screen" ref={place} />
      <Show when={mine()}>
        <div class="keys" role="toolbar" aria-label="Keys">
          <For each={KEYS}>
            {([name, keys]) => (
              <button type="button" onPointerDown={(event) => event.preventDefault()} onClick={() => link?.type(keys)}>
                {name}
              </button>
            )}
          </For>
          <button
            type="button"
            onClick={() => navigator.clipboard.readText().then((text) => link?.type(text), say)}
          >
            Paste
          </button>
        </div>
      </Show>
    </section>
  );
}
