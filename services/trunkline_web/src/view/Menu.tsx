import { createSignal, For, onCleanup } from "solid-js";
import { say } from "../store/world";
import { Icon, type IconName } from "./Icon";

export interface Act {
  name: string;
  when: boolean;
  act(): unknown;
  grave?: boolean;
}

/** A button that opens a list of acts; those that can't be done are absent. */
export function Menu(props: { label: string; icon: IconName; acts: Act[] }) {
  const [open, setOpen] = createSignal(false);
  let place: HTMLDivElement | undefined;
  const away = (event: Event) => {
    if (open() && !place?.contains(event.target as Node)) setOpen(false);
  };
  addEventListener("pointerdown", away);
  onCleanup(() => removeEventListener("pointerdown", away));

  /** The keyboard goes back to where it came from, and so it does when a dialog closes that the act opens. */
  function close(): void {
    setOpen(false);
    place?.querySelector("button")?.focus();
  }

  async function run(one: Act): Promise<void> {
    close();
    try {
      await one.act();
    } catch (error) {
      say(error);
    }
  }

  return (
    <div
      class="menu"
      ref={place}
      onKeyDown={(event) => {
        if (event.key === "Escape" && open()) {
          event.preventDefault();
          close();
        }
      }}
      onFocusOut={(event) => event.relatedTarget instanceof Node && !event.currentTarget.contains(event.relatedTarget) && setOpen(false)}
    >
      <button type="button" aria-label={props.label} aria-haspopup="true" aria-expanded={open()} onClick={() => setOpen(!open())}>
        <Icon name={props.icon} />
      </button>
      <ul hidden={!open()}>
        <For each={props.acts.filter((one) => one.when)}>
          {(one) => (
            <li>
              <button type="button" classList={{ grave: one.grave === true }} onClick={() => void run(one)}>
                {one.name}
              </button>
            </li>
          )}
        </For>
      </ul>
    </div>
  );
}
