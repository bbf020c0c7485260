import { For, onCleanup, type JSX } from "solid-js";
import type { AskRecord } from "../client/protocol";
import { world } from "../store/world";
import { AskCard } from "./AskCard";
import { whenLost } from "./keyboard";

/**
 * Asks that wait. When the one that has the keyboard is decided here, the next gets it, so that a row of asks is a row of keys;
 * decided elsewhere, none gets it: a key that was meant for that one must not decide another. `after` is done when the list goes
 * with the last one.
 */
export function AskList(props: { asks: AskRecord[]; link?: boolean; class?: string; live: "polite" | "assertive"; after?(): void; fallback?: JSX.Element }) {
  let place: HTMLDivElement | undefined;
  let answered: string | undefined;
  const isAnswered = (had: Element | null) => answered !== undefined && had?.closest<HTMLElement>("[data-ask]")?.dataset.ask === answered;
  whenLost(
    () => props.asks,
    () => place,
    (had) => {
      const next = isAnswered(had) ? place?.querySelector<HTMLElement>("article") : undefined;
      (next ?? place)?.focus();
    },
  );
  const { after } = props;
  onCleanup(() => {
    if (after !== undefined && isAnswered(document.activeElement)) queueMicrotask(after);
  });
  return (
    <div ref={place} class={props.class} tabindex="-1" aria-live={props.live}>
      <For each={props.asks} fallback={props.fallback}>
        {(ask) => (
          <AskCard
            record={ask}
            state={props.link ? world.sessions[ask.session] : undefined}
            link={props.link}
            answers={() => (answered = ask.ask)}
          />
        )}
      </For>
    </div>
  );
}
