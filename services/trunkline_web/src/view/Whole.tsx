import { createSignal, Show, type JSX } from "solid-js";
import { MOST, whole } from "../client/blobs";
import { textOf, type BlobRef, type Text } from "../client/protocol";
import { bytes } from "../model/format";
import { connection, say } from "../store/world";

/** A text of the log: what stands in the event, and the whole of it when somebody wants it. What shows it stays while it grows. */
export function Whole(props: { text: Text | null | undefined; children(text: () => string): JSX.Element }) {
  const [all, setAll] = createSignal<string>();
  const [busy, setBusy] = createSignal(false);
  const blob = (): BlobRef | undefined => (typeof props.text === "object" && props.text !== null ? props.text : undefined);
  async function load(wanted: BlobRef): Promise<void> {
    setBusy(true);
    try {
      setAll(new TextDecoder().decode(await whole(connection, wanted)));
    } catch (error) {
      say(error);
    } finally {
      setBusy(false);
    }
  }
  return (
    <>
      {props.children(() => all() ?? textOf(props.text))}
      <Show when={all() === undefined && blob()}>
        {(ref) => (
          <p class="hint">
            This is the beginning of {bytes(ref().size)}.{" "}
            <Show when={ref().size <= MOST} fallback={<>`trunkline blob {ref().sha256.slice(0, 12)}…` prints it.</>}>
              <button type="button" class="quiet" disabled={busy()} onClick={() => void load(ref())}>
                {busy() ? "…" : "Show all"}
              </button>
            </Show>
          </p>
        )}
      </Show>
    </>
  );
}
