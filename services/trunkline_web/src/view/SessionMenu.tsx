import type { SessionState } from "../client/protocol";
import { go } from "../route";
import { showsTerminal } from "../model/terminal";
import { done, fork } from "../store/acts";
import { connection, may } from "../store/world";
import { confirmed, written } from "./Dialog";
import { Menu, type Act } from "./Menu";

/** What can be done with a session as a whole; what its agent can't, or one may not, is absent. */
export function SessionMenu(props: { state: SessionState }) {
  const session = () => props.state.session;
  const call = (verb: string, more: object = {}) => connection.request(`session.${verb}`, { session: session(), ...more });
  const grave = async (title: string, verb: string) => {
    if (await confirmed({ title, go: "Yes", grave: true })) await call(verb);
  };
  const acts = (): Act[] => {
    const { state } = props;
    const able = state.capabilities ?? {};
    const isOpen = !state.closed;
    return [
      {
        name: "Rename",
        when: true,
        async act() {
          const title = await written("The session's title", state.title ?? "");
          if (title) await call("rename", { title });
        },
      },
      { name: "Compact the context", when: isOpen && able.compaction === true, act: () => call("compact") },
      { name: "Fork", when: able.fork === true && isOpen, act: async () => go(`/session/${await fork(session())}`) },
      {
        name: "Go on in the agent's terminal",
        when: isOpen && may("approver") && able.terminal === true && !showsTerminal(state) && state.turns > 0,
        async act() {
          await done("hand_over", { session: session(), to: "terminal" });
          go(`/terminal/${session()}`);
        },
      },
      {
        name: "Take it back from the terminal",
        when: isOpen && may("approver") && state.interface === "terminal",
        act: () => done("hand_over", { session: session(), to: "structured" }),
      },
      { name: "Archive", when: !state.archived, act: () => call("archive") },
      { name: "Bring back from the archive", when: state.archived, act: () => call("unarchive") },
      { name: "Close", when: isOpen, act: () => grave("Close the session?", "close"), grave: true },
      { name: "Kill the agent", when: isOpen && may("owner"), act: () => grave("Kill the agent?", "kill"), grave: true },
    ];
  };
  return <Menu label="More" icon="dots" acts={acts()} />;
}
