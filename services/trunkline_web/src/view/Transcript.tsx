import { createEffect, createSignal, on, onCleanup, Show } from "solid-js";
import { Virtualizer, type VirtualizerHandle } from "virtua/solid";
import type { SessionState } from "../client/protocol";
import type { SessionView } from "../store/session";
import { Icon } from "./Icon";
import { RowView } from "./Rows";

const NEAR = 80;
const OLDER_AT = 600;
/** Milliseconds in which a list that moves while its content changes is taken to be moved by a person. */
const HAND_MS = 1_000;
/** Height of what stands above the list, as in the style sheet. */
const ABOVE = 48;

/** The rows of a session, of which only those on the screen are there. It stays at the end while one is at the end. */
export function Transcript(props: { view: SessionView; state?: SessionState }) {
  const rows = () => props.view.transcript.rows;
  const [atEnd, setAtEnd] = createSignal(true);
  const [shifting, setShifting] = createSignal(false);
  let scroller: HTMLDivElement | undefined;
  let list: VirtualizerHandle | undefined;
  let last = { top: 0, height: 0 };
  let touched = Number.NEGATIVE_INFINITY;

  const beginning = () => {
    if (props.view.loading()) return "Loading …";
    if (props.view.failure()) return "";
    return rows().length > 0 ? "The beginning" : "Nothing has been said yet.";
  };

  function toEnd(): void {
    if (scroller === undefined) return;
    scroller.scrollTop = scroller.scrollHeight;
    last = { top: scroller.scrollTop, height: scroller.scrollHeight };
  }

  async function older(): Promise<void> {
    // One page at a time: only while it is awaited do rows that come before keep what is shown where it is.
    if (shifting() || !props.view.older() || props.view.loading()) return;
    setShifting(true);
    await props.view.loadOlder();
    queueMicrotask(() => setShifting(false));
  }

  function onScroll(): void {
    if (scroller === undefined) return;
    const { scrollTop: top, scrollHeight: height } = scroller;
    // Only who scrolls up leaves the end: rows that shrink and grow under the list do not, though they move it, too.
    const byHand = height === last.height || performance.now() - touched < HAND_MS;
    if (height - top - scroller.clientHeight < NEAR) setAtEnd(true);
    else if (top < last.top && byHand) setAtEnd(false);
    last = { top, height };
    if (top < OLDER_AT) void older();
  }

  // What grows below while one is at the end pulls along: rows come late to their heights.
  function follow(content: HTMLDivElement): void {
    const watching = new ResizeObserver(() => {
      if (atEnd()) toEnd();
    });
    watching.observe(content);
    if (scroller !== undefined) watching.observe(scroller);
    onCleanup(() => watching.disconnect());
    for (const hand of ["wheel", "touchmove", "keydown", "pointerdown"]) {
      scroller?.addEventListener(hand, () => (touched = performance.now()), { passive: true });
    }
  }

  createEffect(
    on(
      () => props.view.loading(),
      (loading) => {
        if (!loading) requestAnimationFrame(toEnd);
      },
    ),
  );

  return (
    <div class="transcript">
      <div class="scroller" ref={scroller} onScroll={onScroll} tabindex="0" role="log" aria-label="Conversation" aria-busy={props.view.loading()}>
        <div class="content" ref={follow}>
          <Show when={props.view.older()} fallback={<p class={props.view.loading() ? "loading" : "beginning"}>{beginning()}</p>}>
            <button type="button" class="quiet" disabled={shifting()} onClick={() => void older()}>
              {shifting() ? "Loading …" : "Older"}
            </button>
          </Show>
          <div class="rows">
            <Virtualizer ref={(handle) => (list = handle)} data={rows()} scrollRef={scroller} shift={shifting()} startMargin={ABOVE}>
              {(row) => <RowView row={row} session={props.view.session} state={props.state} />}
            </Virtualizer>
          </div>
        </div>
      </div>
      <Show when={!atEnd()}>
        <button
          type="button"
          class="latest"
          onClick={() => {
            list?.scrollToIndex(rows().length - 1, { align: "end" });
            requestAnimationFrame(toEnd);
          }}
        >
          <Icon name="down" />
          Latest
        </button>
      </Show>
    </div>
  );
}
