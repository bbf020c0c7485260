import { createSignal, createUniqueId, For, Show } from "solid-js";

interface Asked {
  title: string;
  /** What it means, a line each. */
  lines?: string[];
  /** What the button says that goes on. */
  go: string;
  grave?: boolean;
  /** A line of text is wanted, and begins as this. */
  text?: string;
  done(answer: string | undefined): void;
}

const [asked, setAsked] = createSignal<Asked>();

/** Asks whoever is there; false where they don't want it. */
export function confirmed(question: Omit<Asked, "done" | "text">): Promise<boolean> {
  return new Promise((resolve) => setAsked({ ...question, done: (answer) => resolve(answer !== undefined) }));
}

/** A line of text from whoever is there; undefined where they don't want it. */
export function written(title: string, text: string): Promise<string | undefined> {
  return new Promise((resolve) => setAsked({ title, text, go: "Save", done: resolve }));
}

/** The one dialog of the page. */
export function Dialog() {
  return (
    <Show when={asked()} keyed>
      {(one) => <Open asked={one} />}
    </Show>
  );
}

function Open(props: { asked: Asked }) {
  const heading = createUniqueId();
  const [text, setText] = createSignal(props.asked.text ?? "");
  let answer: string | undefined;
  return (
    <dialog
      aria-labelledby={heading}
      ref={(place) => queueMicrotask(() => place.showModal())}
      onClose={() => {
        setAsked(undefined);
        props.asked.done(answer);
      }}
      onClick={(event) => event.target === event.currentTarget && event.currentTarget.close()}
    >
      <form
        method="dialog"
        onSubmit={() => {
          answer = text().trim();
        }}
      >
        <h2 id={heading}>{props.asked.title}</h2>
        <For each={props.asked.lines}>{(line) => <p class="path">{line}</p>}</For>
        <Show when={props.asked.text !== undefined}>
          <input aria-labelledby={heading} maxlength="200" required value={text()} onInput={(event) => setText(event.currentTarget.value)} />
        </Show>
        <div class="buttons">
          <button class={props.asked.grave ? "deny" : "primary"}>{props.asked.go}</button>
          <button type="button" onClick={(event) => event.currentTarget.closest("dialog")?.close()}>
            Cancel
          </button>
        </div>
      </form>
    </dialog>
  );
}
