import { createSignal, For, Match, Show, Switch } from "solid-js";
import type { SessionState } from "../client/protocol";
import type { AskRow, Part, Row } from "../model/rows";
import { duration, moment, money, count, unturned, visible } from "../model/format";
import { now } from "./clock";
import { PromptMenu } from "./PromptMenu";
import { Icon } from "./Icon";
import { Long, Markdown } from "./Markdown";
import { Content, ToolCard } from "./ToolCard";
import { Whole } from "./Whole";

/** Rows one below the other, of a lane; the transcript's own are in a virtual list. */
export function Rows(props: { rows: Row[] }) {
  return <For each={props.rows}>{(row) => <RowView row={row} />}</For>;
}

type Of<K extends Row["kind"]> = Extract<Row, { kind: K }>;

export function RowView(props: { row: Row; session?: string; state?: SessionState }) {
  const as = <K extends Row["kind"]>(kind: K) => (props.row.kind === kind ? (props.row as Of<K>) : undefined);
  return (
    <Switch>
      <Match when={as("user")}>{(row) => <User row={row()} session={props.session} state={props.state} />}</Match>
      <Match when={as("assistant")}>{(row) => <Assistant row={row()} />}</Match>
      <Match when={as("tool")}>{(row) => <ToolCard row={row()} />}</Match>
      <Match when={as("plan")}>{(row) => <Plan row={row()} />}</Match>
      <Match when={as("notice")}>{(row) => <Notice row={row()} />}</Match>
      <Match when={as("turn")}>{(row) => <Turn row={row()} session={props.session} />}</Match>
      <Match when={as("ask")}>{(row) => <Asked row={row()} />}</Match>
    </Switch>
  );
}

const DELIVERY: Record<string, string> = { queued: "queued", steered: "steered in", cancelled: "taken back" };

function User(props: { row: Of<"user">; session?: string; state?: SessionState }) {
  return (
    <div class="row user" classList={{ synthetic: props.row.synthetic }} data-delivery={props.row.delivery}>
      <div class="bubble">
        <For each={props.row.content}>
          {(block) =>
            block.type === "text" ? (
              <Whole text={block.text}>{(text) => <Words text={text()} />}</Whole>
            ) : (
              <Content block={block} />
            )
          }
        </For>
      </div>
      <div class="meta">
        <Show when={props.row.author}>{visible(props.row.author ?? "")}</Show>
        <Show when={DELIVERY[props.row.delivery]}>
          <span class="chip">{DELIVERY[props.row.delivery]}</span>
        </Show>
        <Moment row={props.row} session={props.session} />
        <Show when={props.state}>{(state) => <PromptMenu row={props.row} state={state()} />}</Show>
      </div>
    </div>
  );
}

const LONG = 3_000;

function Words(props: { text: string }) {
  return (
    <Show when={props.text.length > LONG} fallback={<p dir="auto">{unturned(props.text)}</p>}>
      <Long text={unturned(props.text)} />
    </Show>
  );
}

/** When it was, which leads to the session as it was then. */
function Moment(props: { row: Row; session?: string }) {
  return (
    <Show when={props.session && props.row.cursor}>
      <a
        class="moment"
        href={`/session/${props.session}?at=${encodeURIComponent(props.row.cursor ?? "")}`}
        title="The session as it was then"
      >
        <time dateTime={props.row.time}>{moment(props.row.time, now())}</time>
      </a>
    </Show>
  );
}

function Assistant(props: { row: Of<"assistant"> }) {
  return (
    <div class="row assistant" data-row={props.row.key}>
      <For each={props.row.parts}>
        {(part) => (
          <Show when={part.kind === "thinking"} fallback={<Said part={part} />}>
            <Thinking part={part} />
          </Show>
        )}
      </For>
      <Show when={props.row.aborted}>
        <p class="meta">interrupted</p>
      </Show>
      <Show when={props.row.error}>
        {(error) => (
          <p class="notice" data-level="error">
            {unturned(error().message)}
          </p>
        )}
      </Show>
    </div>
  );
}

function Said(props: { part: Part }) {
  return (
    <div class="said" data-open={props.part.open ? "" : undefined}>
      <Show when={props.part.at > 0}>
        <p class="hint">… the beginning is not here; it comes with the finished message.</p>
      </Show>
      <Whole text={props.part.text}>{(text) => <Markdown text={text()} />}</Whole>
    </div>
  );
}

function Thinking(props: { part: Part }) {
  const [open, setOpen] = createSignal(false);
  return (
    <details class="thinking" open={open()} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Icon name="brain" />
        {props.part.open ? "Thinking …" : "Thought"}
      </summary>
      <Show when={open()}>
        <Whole text={props.part.text}>{(text) => <Markdown text={text()} />}</Whole>
      </Show>
    </details>
  );
}

const MARKS: Record<string, string> = { completed: "☑", in_progress: "◐", pending: "☐" };
const MARK_WORDS: Record<string, string> = { completed: "done", in_progress: "under way", pending: "to do" };

function Plan(props: { row: Of<"plan"> }) {
  return (
    <div class="row plan">
      <h4>Plan</h4>
      <ul>
        <For each={props.row.entries}>
          {(entry) => (
            <li data-status={entry.status}>
              <span role="img" aria-label={MARK_WORDS[entry.status ?? "pending"] ?? entry.status}>
                {MARKS[entry.status ?? "pending"] ?? "☐"}
              </span>
              <span dir="auto">{unturned(entry.content)}</span>
            </li>
          )}
        </For>
      </ul>
    </div>
  );
}

function Notice(props: { row: Of<"notice"> }) {
  return (
    <div class="row notice" data-level={props.row.level} dir="auto">
      <Words text={props.row.text} />
    </div>
  );
}

const OUTCOMES: Record<string, string> = {
  success: "done",
  max_turns: "ended: too many steps",
  max_budget: "ended: budget used up",
  aborted: "broken off: the agent ended",
};

function Turn(props: { row: Of<"turn">; session?: string }) {
  const parts = () => {
    const { usage, cost, duration: ms } = props.row;
    const used = usage ? `${count((usage.input ?? 0) + (usage.cache_read ?? 0))} in, ${count(usage.output ?? 0)} out` : "";
    return [ms ? duration(ms) : "", used, cost ? money(cost) : ""].filter(Boolean).join(" · ");
  };
  return (
    <div class="row turn" data-outcome={props.row.outcome}>
      <span>{OUTCOMES[props.row.outcome] ?? props.row.outcome}</span>
      <Show when={props.row.error}>{(error) => <span class="error">{unturned(error().message)}</span>}</Show>
      <Show when={parts()}>
        <span class="usage">{parts()}</span>
      </Show>
      <Moment row={props.row} session={props.session} />
    </div>
  );
}

/** In the transcript an ask is a line; the card to decide it stands below while it is open. */
function Asked(props: { row: AskRow }) {
  const what = () => props.row.requested.name ?? { question: "a question", plan: "a plan", permission: "a tool" }[props.row.asked];
  const how = () => {
    const { ended } = props.row;
    if (ended === undefined) return "waits for a decision";
    if (ended.how !== "decided") return ended.how;
    const verb = { allow: "allowed", deny: "denied", answered: "answered" }[ended.behaviour ?? ""] ?? ended.behaviour;
    return `${verb} by ${ended.by}${ended.rule ? ` (rule ${ended.rule})` : ""}`;
  };
  return (
    <div class="row asked" data-behaviour={props.row.ended?.behaviour ?? "open"}>
      <Icon name="shield" />
      <b>{visible(what())}</b>
      <span>{how()}</span>
      <Show when={props.row.ended?.message}>
        <q dir="auto">{unturned(props.row.ended?.message ?? "")}</q>
      </Show>
    </div>
  );
}
