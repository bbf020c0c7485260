import { createSignal, For, onCleanup } from "solid-js";
import { newSessionId } from "trunkline-client";
import type { SessionState } from "../client/protocol";
import { go } from "../route";
import { connection, may, say } from "../store/world";
import { Icon } from "./Icon";

interface Act {
  name: string;
  when: boolean;
  act(): Promise<unknown> | undefined;
  grave?: boolean;
}

/** What can be done with a session as a whole; what its agent can't, or one may not, is absent. */
export function SessionMenu(props: { state: SessionState }) {
  const [open, setOpen] = createSignal(false);
  const session = () => props.state.session;
  const call = (verb: string, more: object = {}) => connection.call(`session.${verb}`, { session: session(), ...more });
  const acts = (): Act[] => {
    const { state } = props;
    const able = state.capabilities ?? {};
    const isOpen = !state.closed;
    return [
      {
        name: "Rename",
        when: true,
        act() {
          const title = prompt("Title", state.title ?? "")?.trim();
          return title ? call("rename", { title }) : undefined;
        },
      },
      { name: "Compact the context", when: isOpen && able.compaction === true, act: () => call("compact") },
      {
        name: "Fork",
        when: able.fork === true && isOpen,
        async act() {
          const made = newSessionId();
          await call("fork", { new: made });
          go(`/session/${made}`);
        },
      },
      { name: "Archive", when: !state.archived, act: () => call("archive") },
      { name: "Bring back from the archive", when: state.archived, act: () => call("unarchive") },
      { name: "Close", when: isOpen, act: () => call("close"), grave: true },
      { name: "Kill the agent", when: isOpen && may("owner"), act: () => call("kill"), grave: true },
    ].filter((one) => one.when);
  };
  let place: HTMLDivElement | undefined;
  const away = (event: Event) => {
    if (open() && !place?.contains(event.target as Node)) setOpen(false);
  };
  addEventListener("pointerdown", away);
  onCleanup(() => removeEventListener("pointerdown", away));
  return (
    <div
      class="menu"
      ref={place}
      onKeyDown={(event) => {
        if (event.key === "Escape" && open()) {
          event.preventDefault();
          setOpen(false);
        }
      }}
    >
      <button type="button" aria-label="More" aria-haspopup="true" aria-expanded={open()} onClick={() => setOpen(!open())}>
        <Icon name="dots" />
      </button>
      <ul hidden={!open()}>
        <For each={acts()}>
          {(one) => (
            <li>
              <button
                type="button"
                classList={{ grave: one.grave === true }}
                onClick={() => {
                  setOpen(false);
                  if (!one.grave || confirm(`${one.name}?`)) void one.act()?.catch(say);
                }}
              >
                {one.name}
              </button>
            </li>
          )}
        </For>
      </ul>
    </div>
  );
}
