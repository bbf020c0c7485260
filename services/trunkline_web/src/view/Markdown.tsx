import { createEffect, createResource, createSignal, onCleanup, Show } from "solid-js";

const engine = () => import("../model/markdown");
const LONG = 8_000;
const HUGE = 200_000;
const SLOW_MS = 150;

/** Text of an agent. While it is written a long one is drawn a few times a second; a huge one is shown as it is. */
export function Markdown(props: { text: string }) {
  const [markdown] = createResource(engine);
  const [shown, setShown] = createSignal(props.text);
  let timer: ReturnType<typeof setTimeout> | undefined;
  createEffect(() => {
    const { text } = props;
    if (text.length < LONG) setShown(text);
    else
      timer ??= setTimeout(() => {
        timer = undefined;
        setShown(props.text);
      }, SLOW_MS);
  });
  onCleanup(() => clearTimeout(timer));
  let place: HTMLDivElement | undefined;
  createEffect(() => {
    const loaded = markdown();
    if (place === undefined || shown().length >= HUGE) return;
    if (loaded === undefined) place.textContent = shown();
    else place.replaceChildren(loaded.render(shown()));
  });
  return (
    <Show when={props.text.length < HUGE} fallback={<Long text={props.text} />}>
      <div class="markdown" dir="auto" ref={place} />
    </Show>
  );
}

const STEP = 20_000;

/** A text of any length: its beginning, and more of it on demand. */
export function Long(props: { text: string }) {
  const [size, setSize] = createSignal(STEP);
  const rest = () => props.text.length - size();
  return (
    <>
      <pre class="long">{props.text.slice(0, size())}</pre>
      <Show when={rest() > 0}>
        <button type="button" class="quiet" onClick={() => setSize(size() + 10 * STEP)}>
          Show more ({rest().toLocaleString("en")} characters are left)
        </button>
      </Show>
    </>
  );
}
