import { createEffect, createResource, createSignal, onCleanup, Show } from "solid-js";
import type { Drawing } from "../model/markdown";

const engine = () => import("../model/markdown");
const HUGE = 200_000;
/** A text that grows is drawn as often as takes a tenth of the time. */
const SHARE = 10;

/** Text of an agent. A huge one is shown as it is. */
export function Markdown(props: { text: string }) {
  return (
    <Show when={props.text.length < HUGE} fallback={<Long text={props.text} />}>
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
  /** It goes deeper than the parser does. */
  let deep = false;

  function draw(): void {
    timer = undefined;
    const loaded = markdown();
    if (place === undefined) return;
    if (loaded === undefined || deep) {
      place.textContent = props.text;
      return;
    }
    if (drawing === undefined) {
      place.replaceChildren();
      drawing = new loaded.Drawing(place);
    }
    const begun = performance.now();
    try {
      drawing.draw(props.text);
    } catch {
      place.textContent = props.text;
      deep = true;
    }
    wait = SHARE * (performance.now() - begun);
  }

  createEffect(() => {
    props.text;
    markdown();
    if (drawing === undefined) draw();
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
