import { createMemo, createSignal, For, Show } from "solid-js";
import type { BlobRef, Block, Text } from "../client/protocol";
import { textOf } from "../client/protocol";
import { MOST, whole } from "../client/blobs";
import { connection, say } from "../store/world";
import type { Common, ToolRow } from "../model/rows";
import { bytes, duration, plain, unturned, visible } from "../model/format";
import { changesIn, changesOf, commandOf, headOf } from "../model/tools";
import { Diff } from "./Diff";
import { Icon, type IconName } from "./Icon";
import { Long, Markdown } from "./Markdown";
import { Rows } from "./Rows";
import { Whole } from "./Whole";

const KINDS: Record<string, IconName> = {
  read: "read",
  edit: "edit",
  delete: "trash",
  move: "folder",
  search: "search",
  execute: "terminal",
  think: "brain",
  fetch: "fetch",
  switch_mode: "adjustments",
};

const STATES = { running: "runs", completed: "done", failed: "failed", rejected: "denied", cancelled: "stopped" };

/** A call of a tool: one line, and all of it when it is opened. Edits are open from the start. */
export function ToolCard(props: { row: Common & ToolRow }) {
  const row = () => props.row;
  const changes = createMemo(() => {
    const made = changesIn(row().content);
    return made.length > 0 ? made : changesOf(row().input);
  });
  const [open, setOpen] = createSignal(row().tool === "edit");
  const head = () => visible(headOf(row().name, row().title, row().input));
  return (
    <details class="tool" data-status={row().status} open={open()} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Icon name={KINDS[row().tool] ?? "wrench"} />
        <span class="name">{visible(row().name)}</span>
        <span class="about" title={head()}>
          {head()}
        </span>
        <span class="state">
          {row().status === "running" && row().elapsed ? `${Math.round(row().elapsed ?? 0)} s` : STATES[row().status]}
          <Show when={row().duration}>{(ms) => <> · {duration(ms())}</>}</Show>
        </span>
        <Icon name="chevron" />
      </summary>
      <Show when={open()}>
        <div class="inside">
          <Show when={row().summary}>
            <p dir="auto">{unturned(row().summary ?? "")}</p>
          </Show>
          <Show when={commandOf(row().input)}>{(line) => <pre class="command">{visible(line())}</pre>}</Show>
          <For each={changes()}>{(change) => <Diff change={change} />}</For>
          <Show when={!commandOf(row().input) && changes().length === 0 && row().input}>
            <Long text={visible(JSON.stringify(row().input, null, 2))} />
          </Show>
          <Show when={row().output}>
            <Long text={plain(row().output)} />
          </Show>
          <For each={row().content.filter((block) => block.type !== "diff")}>{(block) => <Content block={block} />}</For>
          <Show when={row().exit}>
            <p class="hint">exit code {row().exit}</p>
          </Show>
          <Show when={row().reason}>
            <p class="hint">{unturned(row().reason ?? "")}</p>
          </Show>
        </div>
      </Show>
      <Show when={row().rows.length > 0}>
        <Lane row={row()} />
      </Show>
    </details>
  );
}

/** What a subagent did, folded below its call. */
function Lane(props: { row: ToolRow }) {
  const [open, setOpen] = createSignal(false);
  return (
    <details class="lane" open={open()} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Icon name="users" />
        {props.row.rows.length} steps of the subagent
      </summary>
      <Show when={open()}>
        <Rows rows={props.row.rows} />
      </Show>
    </details>
  );
}

/** A block of a tool's result or of a message. */
export function Content(props: { block: Block }) {
  const text = (value: Text | null | undefined) => <Whole text={value}>{(all) => <Long text={plain(all())} />}</Whole>;
  const block = props.block;
  switch (block.type) {
    case "text":
    case "code":
      return text(block.text);
    case "terminal":
      return text(block.output);
    case "image":
      return <Picture block={block} />;
    case "file":
      return <p class="chip file">{visible(block.name ?? block.path ?? "file")}</p>;
    case "resource":
      return (
        <>
          <p class="hint">{visible(block.uri ?? block.name ?? "")}</p>
          <Show when={block.text}>{text(block.text)}</Show>
        </>
      );
    case "tool_result":
      return <Long text={visible(typeof block.content === "string" ? block.content : JSON.stringify(block.content, null, 2))} />;
    case "thinking":
      return <Markdown text={textOf(block.text)} />;
    default:
      return <Long text={visible(JSON.stringify(block, null, 2))} />;
  }
}

type Picture = Extract<Block, { type: "image" }>;

/** A picture of the formats that hold nothing but pixels; a large one when somebody wants to see it. */
function Picture(props: { block: Picture }) {
  const [loaded, setLoaded] = createSignal<string>();
  const pixels = () => /^image\/(png|jpeg|gif|webp|avif|bmp)$/.test(props.block.media_type);
  const large = (): BlobRef | undefined => (typeof props.block.data === "object" ? (props.block.data ?? undefined) : undefined);
  const data = () => loaded() ?? (typeof props.block.data === "string" ? props.block.data : undefined);
  const load = (blob: BlobRef) =>
    whole(connection, blob).then((found) => setLoaded(new TextDecoder().decode(found)), say);
  return (
    <Show
      when={pixels() && data()}
      fallback={
        <Show when={pixels() && large()} fallback={<p class="chip file">a picture, kept in the log</p>}>
          {(blob) => (
            <Show when={blob().size <= MOST} fallback={<p class="chip file">a picture of {bytes(blob().size)}</p>}>
              <button type="button" onClick={() => void load(blob())}>
                Show the picture ({bytes(blob().size)})
              </button>
            </Show>
          )}
        </Show>
      }
    >
      <img class="picture" alt="attached" src={`data:${props.block.media_type};base64,${data()}`} />
    </Show>
  );
}
