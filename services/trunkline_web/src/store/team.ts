/** One team that is looked at. It follows the log of all its sessions; the board itself is the gateway's. */

import { createSignal, type Accessor } from "solid-js";
import { createStore, reconcile } from "solid-js/store";
import type { TrunklineError } from "trunkline-client";
import { isClosed } from "../client/connection";
import { merged, type Message, type Team } from "../model/team";
import { connection } from "./world";

const PAGE = 50;
const REFRESH_MS = 400;
/** The board is a projection, which may be a moment behind the event that told of a change. */
const MOST_AGAIN = 8;

interface Said {
  messages: Message[];
  has_more: boolean;
  left_out: number;
}

export interface TeamView {
  board: { now?: Team };
  messages: Accessor<Message[]>;
  /** Whether there are messages before those that are shown. */
  older: Accessor<boolean>;
  failure: Accessor<string>;
  loadOlder(): Promise<void>;
  end(): void;
}

export function watchTeam(id: string): TeamView {
  const [board, setBoard] = createStore<{ now?: Team }>({});
  const [messages, setMessages] = createSignal<Message[]>([]);
  const [older, setOlder] = createSignal(false);
  const [failure, setFailure] = createSignal("");
  let timer: ReturnType<typeof setTimeout> | undefined;
  let ended = false;
  /** The time of the latest event of the team: what the board has to be as new as. */
  let told = "";
  let again = 0;
  let talk = true;

  function stir(): void {
    if (!ended) timer ??= setTimeout(() => void load(), REFRESH_MS);
  }

  async function load(): Promise<void> {
    timer = undefined;
    const withTalk = talk;
    talk = false;
    try {
      const [team, said] = await Promise.all([
        connection.call("team.get", { team: id }),
        withTalk ? connection.call("team.messages", { team: id, limit: PAGE }) : undefined,
      ]);
      if (ended) return;
      setFailure("");
      setBoard("now", reconcile(team as Team, { key: "name" }));
      if (said !== undefined) take(said);
      if (team.updated >= told) again = 0;
      else if (again++ < MOST_AGAIN) {
        talk = withTalk;
        stir();
      }
    } catch (error) {
      talk ||= withTalk;
      fail(error);
    }
  }

  function take(said: Said): void {
    const first = said.messages[0]?.event;
    const joins = first === undefined || messages().some((one) => one.event === first);
    // what does not overlap would leave a hole: it begins anew
    if (!joins || messages().length === 0) setOlder(said.has_more);
    setMessages(joins ? merged(messages(), said.messages) : said.messages);
  }

  async function loadOlder(): Promise<void> {
    const before = messages()[0]?.event;
    if (before === undefined) return;
    const said = await connection.call("team.messages", { team: id, before, limit: PAGE });
    setMessages(merged(said.messages, messages()));
    setOlder(said.has_more);
  }

  function fail(error: unknown): void {
    if (!isClosed(error)) setFailure(error instanceof Error ? error.message : String(error));
  }

  const subscription = connection.follow(
    { team: id, patterns: ["team.*"], deltas: false },
    {
      opened() {
        talk = true;
        void load();
      },
      event(event) {
        again = 0;
        if (event.time > told) told = event.time;
        if (event.type === "team.message") talk = true;
        stir();
      },
      gap: () => stir(),
      failed: (error: TrunklineError) => fail(error),
    },
  );

  return {
    board,
    messages,
    older,
    failure,
    loadOlder,
    end() {
      ended = true;
      clearTimeout(timer);
      subscription.end();
    },
  };
}
