import { createEffect, createSignal, onCleanup, Show } from "solid-js";
import { connection, hello, link } from "../store/world";

/** How the connection is: always there, loud only when something is wrong. */
export function ConnectionBar() {
  const [left, setLeft] = createSignal(0);
  let timer: ReturnType<typeof setInterval> | undefined;
  createEffect(() => {
    clearInterval(timer);
    const now = link();
    if (now.state !== "waiting") return;
    const count = () => setLeft(Math.max(0, Math.ceil((now.until - Date.now()) / 1000)));
    count();
    timer = setInterval(count, 500);
  });
  onCleanup(() => clearInterval(timer));
  const words = () => {
    const now = link();
    switch (now.state) {
      case "open":
        return `${now.hello.actor} · ${now.hello.role}`;
      case "waiting":
        return left() > 0 ? `no connection, again in ${left()} s` : "no connection";
      case "connecting":
        return hello() ? "connecting again …" : "connecting …";
      default:
        return "signed out";
    }
  };
  return (
    <p class="connection" data-state={link().state} role="status">
      <span class="dot" aria-hidden="true" />
      <span>{words()}</span>
      <Show when={link().state === "waiting"}>
        <button type="button" onClick={() => connection.retry()}>
          Now
        </button>
      </Show>
    </p>
  );
}
