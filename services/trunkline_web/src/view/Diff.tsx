import { createMemo, createSignal, For, Show } from "solid-js";
import { counted, linesOf, type Line } from "../model/lines";
import type { Change } from "../model/tools";
import { visible } from "../model/format";

const FIRST = 120;
const STEP = 1_000;
const WIDE = 2_000;
const NAMES = { "+": "added", "-": "removed", " ": "same", "@": "place" };

/** A change of a file. A long one is drawn in steps. */
export function Diff(props: { change: Change }) {
  const lines = createMemo(() => linesOf(props.change));
  const [size, setSize] = createSignal(FIRST);
  const sums = createMemo(() => counted(lines()));
  return (
    <figure class="diff">
      <figcaption>
        <span class="path">{visible(props.change.path)}</span>
        <span class="added">+{sums().added}</span>
        <span class="removed">−{sums().removed}</span>
      </figcaption>
      <div class="lines" tabindex="0" role="group" aria-label={`Changes of ${props.change.path}`}>
        <For each={lines().slice(0, size())}>{(line) => <DiffLine line={line} />}</For>
      </div>
      <Show when={lines().length > size()}>
        <button type="button" class="quiet" onClick={() => setSize(size() + STEP)}>
          Show more ({(lines().length - size()).toLocaleString("en")} lines are left)
        </button>
      </Show>
    </figure>
  );
}

function DiffLine(props: { line: Line }) {
  const text = () => visible(props.line.text.slice(0, WIDE)) + (props.line.text.length > WIDE ? " …" : "");
  return (
    <div class={`line ${NAMES[props.line.sign]}`}>
      <span class="sign" aria-hidden="true">
        {props.line.sign === "@" ? "" : props.line.sign}
      </span>
      <code>{text() || " "}</code>
    </div>
  );
}
