/** Where the keyboard is while a list changes under it. */

import { createComputed, createEffect, on } from "solid-js";

/** Has `lost` done where a change of `list` took the element away, or elsewhere, that had the keyboard inside of `place`. */
export function whenLost(list: () => unknown, place: () => HTMLElement | undefined, lost: (had: HTMLElement) => void): void {
  let had: HTMLElement | undefined;
  createComputed(
    on(list, () => {
      const now = document.activeElement;
      had = now instanceof HTMLElement && place()?.contains(now) ? now : undefined;
    }),
  );
  createEffect(
    on(list, () => {
      if (had !== undefined && document.activeElement === document.body) lost(had);
      had = undefined;
    }),
  );
}
