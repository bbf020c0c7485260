import { createEffect, on } from "solid-js";
import { unturned } from "../model/format";
import { route } from "../route";

/** Instead of a page that can't be shown; the rest of the app goes on. */
export function Broken(props: { error: unknown; again(): void }) {
  createEffect(on(route, () => props.again(), { defer: true }));
  return (
    <div class="empty welcome" role="alert">
      <p>This page could not be shown.</p>
      <p class="hint">{unturned(props.error instanceof Error ? props.error.message : String(props.error))}</p>
      <button type="button" onClick={() => props.again()}>
        Try again
      </button>
    </div>
  );
}
