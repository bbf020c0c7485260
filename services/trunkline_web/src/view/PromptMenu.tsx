import { Show } from "solid-js";
import type { SessionState } from "../client/protocol";
import type { Row } from "../model/rows";
import { done, rewound } from "../store/acts";
import { may } from "../store/world";
import { confirmed } from "./Dialog";
import { Menu, type Act } from "./Menu";

/** What can be done from a prompt on: putting files back to before it. */
export function PromptMenu(props: { row: Extract<Row, { kind: "user" }>; state: SessionState }) {
  const session = () => props.state.session;
  const acts = (): Act[] => {
    const able = props.state.capabilities ?? {};
    const { item } = props.row;
    return [
      {
        name: "Put files back to before this",
        when: able.rewind === true && Boolean(item),
        async act() {
          const files = await rewound(session(), String(item));
          const lines = files.length > 0 ? files : ["No file has changed since."];
          if (await confirmed({ title: "Put the files back?", lines, go: "Put back", grave: true })) {
            await done("rewind", { session: session(), to: item });
          }
        },
      },
    ].filter((one) => one.when);
  };
  const can = () => may("participant") && !props.state.closed && !props.row.synthetic && props.row.delivery === "sent";
  return (
    <Show when={can() && acts().length > 0}>
      <Menu label="From this prompt" icon="dots" acts={acts()} />
    </Show>
  );
}
