import { createSignal, onCleanup, Show } from "solid-js";
import { link } from "../store/world";
import { ConnectionBar } from "./ConnectionBar";

/** Before the gateway has been reached: what is the matter, and that it is tried again. */
export function Unreached() {
  const [online, setOnline] = createSignal(navigator.onLine);
  const look = () => setOnline(navigator.onLine);
  addEventListener("online", look);
  addEventListener("offline", look);
  onCleanup(() => {
    removeEventListener("online", look);
    removeEventListener("offline", look);
  });
  return (
    <main class="sign-in">
      <img src="/icon.svg" alt="" width="56" height="56" />
      <h1>Trunkline</h1>
      <Show when={link().state === "waiting"}>
        <p class="offline">
          {online()
            ? "The gateway can't be reached. What you have written is kept; it goes out when the connection is back."
            : "You are offline. What you have written is kept; it goes out when the connection is back."}
        </p>
      </Show>
      <ConnectionBar />
    </main>
  );
}
