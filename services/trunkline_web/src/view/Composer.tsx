import { createEffect, createMemo, createSignal, For, onCleanup, Show } from "solid-js";
import { newCommandId } from "trunkline-client";
import type { Block, Choice, SessionState } from "../client/protocol";
import { visible } from "../model/format";
import { attach, MOST, sizeOf, type Attachment } from "../model/attachments";
import { plainText } from "../model/rows";
import { read, write } from "../store/kept";
import { submit, waitingOf, withdraw } from "../store/outbox";
import { connection, link, may, say } from "../store/world";
import { Icon } from "./Icon";

type Delivery = "auto" | "queue" | "steer";

/** What is attached to prompts that are not sent yet, for as long as the page lives: it is too much to be kept longer. */
const attached = new Map<string, Attachment[]>();
const attachmentOf = (block: Block): Attachment => ({ name: ("name" in block && block.name) || "picture", block });

const TYPING_MS = 4_000;
const touch = matchMedia("(pointer: coarse)").matches;

/** Where one writes: prompts, slash commands, attachments. What is not sent yet survives a reload and the lack of a network. */
export function Composer(props: { state: SessionState; writing: boolean }) {
  const session = () => props.state.session;
  const [text, setText] = createSignal(read(`draft.${session()}`, ""));
  const [attachments, setAttachments] = createSignal<Attachment[]>(attached.get(session()) ?? []);
  const [delivery, setDelivery] = createSignal<Delivery>("auto");
  const [dragged, setDragged] = createSignal(false);
  const [chosen, setChosen] = createSignal(0);
  let place: HTMLTextAreaElement | undefined;
  let typed = 0;

  createEffect(() => write(`draft.${session()}`, text()));
  createEffect(() => attached.set(session(), attachments()));
  createEffect(() => {
    text();
    if (place === undefined) return;
    place.style.height = "auto";
    place.style.height = `${Math.min(place.scrollHeight, innerHeight * 0.4)}px`;
  });

  const able = () => props.state.capabilities ?? {};
  const running = () => props.writing || (props.state.turn !== null && props.state.turn !== undefined);
  /** The text whose completions are not wanted. */
  const [dismissed, setDismissed] = createSignal("");
  const choices = createMemo(() => (text() === dismissed() ? [] : matching(text(), able().slash_commands ? props.state.commands : [])));

  async function send(): Promise<void> {
    const words = text().trim();
    const content: Block[] = [...attachments().map(({ block }) => block)];
    if (words) content.push({ type: "text", text: words });
    if (content.length === 0) return;
    const slash = commandOf(words, props.state.commands);
    setText("");
    setAttachments([]);
    if (slash !== undefined && content.length === 1) {
      try {
        await connection.call("session.run_command", { session: session(), ...slash, id: newCommandId() });
      } catch (error) {
        setText(words);
        say(error);
      }
      return;
    }
    submit({ id: newCommandId(), session: session(), content, delivery: running() ? delivery() : "auto" });
  }

  function interrupt(): void {
    connection.call("session.interrupt", { session: session(), id: newCommandId() }).catch(say);
  }

  async function add(files: Iterable<File>): Promise<void> {
    for (const file of files) {
      try {
        const made = await attach(file);
        if (sizeOf([...attachments(), made]) > MOST) throw new Error("All attachments together have to be below 380 KB.");
        if (made.block.type === "image" && !able().image_input) throw new Error("This agent takes no pictures.");
        setAttachments([...attachments(), made]);
      } catch (error) {
        say(error);
      }
    }
  }

  function onKey(event: KeyboardEvent): void {
    if (choices().length > 0) {
      const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (move !== undefined) {
        setChosen((chosen() + move + choices().length) % choices().length);
        event.preventDefault();
        return;
      }
      if (event.key === "Tab" || (event.key === "Enter" && `/${choices()[chosen()]?.id}` !== text())) {
        complete(choices()[chosen()]);
        event.preventDefault();
        return;
      }
      if (event.key === "Escape") {
        setDismissed(text());
        event.preventDefault();
        return;
      }
    }
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && !touch) {
      event.preventDefault();
      void send();
    }
  }

  function complete(choice: Choice | undefined): void {
    if (choice !== undefined) setText(`/${choice.id} `);
    setChosen(0);
    place?.focus();
  }

  function onInput(value: string): void {
    setText(value);
    setChosen(0);
    if (Date.now() - typed > TYPING_MS && link().state === "open") {
      typed = Date.now();
      connection.call("presence.typing", { session: session() }).catch(() => undefined);
    }
  }

  const onEscape = (event: KeyboardEvent) => {
    if (event.key === "Escape" && running() && isForAgent(event)) interrupt();
  };
  // Files may be dropped anywhere: beside the place for them the browser would open them instead of the app.
  const onDrag = (event: DragEvent) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    const isWriter = may("participant");
    setDragged(isWriter && event.type === "dragover");
    if (!isWriter) event.dataTransfer.dropEffect = "none";
    else if (event.type === "drop") void add(event.dataTransfer.files);
  };
  const onLeave = (event: DragEvent) => event.relatedTarget === null && setDragged(false);
  const listeners = { keydown: onEscape, dragover: onDrag, drop: onDrag, dragleave: onLeave };
  for (const [name, listener] of Object.entries(listeners)) addEventListener(name, listener as EventListener);
  onCleanup(() => {
    for (const [name, listener] of Object.entries(listeners)) removeEventListener(name, listener as EventListener);
  });

  return (
    <Show when={may("participant")} fallback={<p class="hint composer">You are a viewer here: others write.</p>}>
      <form
        class="composer"
        data-dragged={dragged() ? "" : undefined}
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <For each={waitingOf(session())}>
          {(one) => (
            <div class="waiting" data-error={one.error ? "" : undefined}>
              <p>{plainText(one.content) || "attachments"}</p>
              <span role="status">{one.error ?? (link().state === "open" ? "sending …" : "goes out when the connection is back")}</span>
              <button
                type="button"
                onClick={() => {
                  const back = withdraw(one.id);
                  if (back === undefined) return;
                  setText([plainText(back.content), text()].filter(Boolean).join("\n"));
                  setAttachments([...back.content.filter((block) => block.type !== "text").map(attachmentOf), ...attachments()]);
                  place?.focus();
                }}
              >
                Edit
              </button>
            </div>
          )}
        </For>
        <Show when={choices().length > 0}>
          <ul class="completions" role="listbox" aria-label="Commands" id="completions">
            <For each={choices()}>
              {(choice, index) => (
                <li
                  role="option"
                  id={`completion-${index()}`}
                  aria-selected={index() === chosen()}
                  onPointerDown={(event) => {
                    event.preventDefault();
                    complete(choice);
                  }}
                >
                  <b>/{choice.id}</b> <span>{choice.description ?? choice.hint ?? ""}</span>
                </li>
              )}
            </For>
          </ul>
        </Show>
        <Show when={attachments().length > 0}>
          <ul class="attachments">
            <For each={attachments()}>
              {(one) => (
                <li class="chip">
                  <Show when={thumbnailOf(one.block)}>{(source) => <img src={source()} alt="" />}</Show>
                  {visible(one.name)}
                  <button
                    type="button"
                    aria-label={`Remove ${one.name}`}
                    onClick={() => setAttachments(attachments().filter((other) => other !== one))}
                  >
                    <Icon name="cross" />
                  </button>
                </li>
              )}
            </For>
          </ul>
        </Show>
        <div class="write">
          <label class="attach" title="Attach files">
            <Icon name="clip" />
            <span class="visually-hidden">Attach files</span>
            <input
              type="file"
              multiple
              onChange={(event) => {
                void add(event.currentTarget.files ?? []);
                event.currentTarget.value = "";
              }}
            />
          </label>
          <textarea
            ref={place}
            rows="1"
            aria-label="Message to the agent"
            aria-autocomplete="list"
            aria-controls={choices().length > 0 ? "completions" : undefined}
            aria-activedescendant={choices().length > 0 ? `completion-${chosen()}` : undefined}
            placeholder={placeholderOf(props.state)}
            value={text()}
            onInput={(event) => onInput(event.currentTarget.value)}
            onKeyDown={onKey}
            onPaste={(event) => {
              const files = [...(event.clipboardData?.files ?? [])];
              if (files.length > 0) {
                event.preventDefault();
                void add(files);
              }
            }}
          />
          <Show when={running() && able().interrupt !== false}>
            <button type="button" class="interrupt" onClick={interrupt} title="Interrupt (Esc)" aria-label="Interrupt">
              <Icon name="stop" />
            </button>
          </Show>
          <button class="send" aria-label="Send" title="Send (Enter)" disabled={!text().trim() && attachments().length === 0}>
            <Icon name="send" />
          </button>
        </div>
        <Show when={running() && (able().steering || able().queueing)}>
          <div class="delivery" role="radiogroup" aria-label="What becomes of a message while the agent works">
            <For each={deliveries(props.state)}>
              {([value, name]) => (
                <label>
                  <input
                    type="radio"
                    name="delivery"
                    checked={delivery() === value}
                    onChange={() => setDelivery(value)}
                  />
                  {name}
                </label>
              )}
            </For>
          </div>
        </Show>
      </form>
    </Show>
  );
}

/** Whether a key is meant for the agent: a dialog that is open, or a field that is written in elsewhere, has it first. */
const isForAgent = (event: KeyboardEvent): boolean =>
  !event.defaultPrevented && !event.repeat && document.querySelector("dialog[open]") === null && !(event.target as Element).closest?.("input, select");

const thumbnailOf = (block: Block): string | undefined =>
  block.type === "image" && typeof block.data === "string" ? `data:${block.media_type};base64,${block.data}` : undefined;

function deliveries(state: SessionState): [Delivery, string][] {
  const able = state.capabilities ?? {};
  return [
    ["auto", "Auto"],
    ...(able.steering ? [["steer", "Into this turn"] as [Delivery, string]] : []),
    ...(able.queueing ? [["queue", "After it"] as [Delivery, string]] : []),
  ];
}

function placeholderOf(state: SessionState): string {
  if (state.closed) return "The session is closed";
  const { steering, queueing } = state.capabilities ?? {};
  const ways = [steering && "steer", queueing && "queue"].filter(Boolean).join(" or ");
  return state.turn && ways ? `${ways[0]?.toUpperCase()}${ways.slice(1)} …` : `Message ${state.agent ?? state.adapter ?? "the agent"}`;
}

const MOST_CHOICES = 8;

function matching(text: string, commands: Choice[]): Choice[] {
  if (!/^\/\S*$/.test(text)) return [];
  const begun = text.slice(1).toLowerCase();
  return commands.filter((one) => one.id.toLowerCase().startsWith(begun) && one.id !== begun).slice(0, MOST_CHOICES);
}

/** A line that is one of the agent's own commands. */
export function commandOf(text: string, commands: Choice[]): { name: string; arguments: string } | undefined {
  const found = /^\/(\S+)\s*([\s\S]*)$/.exec(text);
  if (found === null || !commands.some((one) => one.id === found[1])) return undefined;
  return { name: found[1] as string, arguments: found[2] ?? "" };
}
