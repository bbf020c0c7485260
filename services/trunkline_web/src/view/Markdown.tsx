import { createEffect, createResource, createSignal, onCleanup, Show } from "solid-js";
import { unturned } from "../model/format";
import type { Drawing } from "../model/markdown";

export const engine = () => import("../model/markdown");
const HUGE = 200_000;
/** A text that grows is drawn as often as takes a tenth of the time. */
const SHARE = 10;
/** Milliseconds between two drawings at least: laying the page out takes more than parsing. */
const LEAST_MS = 60;

/** Text of an agent. A huge one is shown as it is. */
export function Markdown(props: { text: string }) {
  return (
    <Show when={props.text.length < HUGE} fallback={<Long text={unturned(props.text)} />}>
      <Drawn text={props.text} />
    </Show>
  );
}

function Drawn(props: { text: string }) {
  const [markdown] = createResource(engine);
  let place: HTMLDivElement | undefined;
  let drawing: Drawing | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let wait = 0;
  let busy = false;

  async function draw(): Promise<void> {
    timer = undefined;
    const loaded = markdown();
    const { text } = props;
    if (place === undefined) return;
    if (loaded === undefined) {
      place.textContent = unturned(text);
      return;
    }
    const begun = performance.now();
    const light = loaded.isLight(text);
    if (!light && drawing === undefined) place.textContent = unturned(text);
    busy = true;
    try {
      const apart = light ? undefined : await loaded.parseApart(text);
      if (drawing === undefined) {
        place.replaceChildren();
        drawing = new loaded.Drawing(place);
      }
      if (apart === undefined) drawing.draw(text);
      else drawing.put(apart);
    } catch {
      // nested too deeply, or made to take long: it is shown as it is
      drawing = undefined;
      place.textContent = unturned(text);
    }
    busy = false;
    wait = Math.max(LEAST_MS, SHARE * (performance.now() - begun));
    if (props.text !== text) timer ??= setTimeout(draw, wait);
  }

  createEffect(() => {
    props.text;
    markdown();
    if (busy) return;
    if (wait === 0) void draw();
    else timer ??= setTimeout(draw, wait);
  });
  onCleanup(() => clearTimeout(timer));
  return <div class="markdown" dir="auto" ref={place} />;
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
