import { createMemo, createSignal, createUniqueId, For, Match, Show, Switch } from "solid-js";
import type { AskRecord, Requested, Role, SessionState } from "../client/protocol";
import { TrunklineError } from "trunkline-client";
import { allow, choose, deny, further, type Answer } from "../model/answers";
import { unturned, visible } from "../model/format";
import { changesOf, commandOf, pathOf, rulesBy } from "../model/tools";
import { decide, hello, may, say } from "../store/world";
import { Diff } from "./Diff";
import { Icon } from "./Icon";
import { Long, Markdown } from "./Markdown";
import { Questions } from "./Questions";
import { Whole } from "./Whole";

const LATE = new Set(["already_decided", "withdrawn", "expired"]);

/** An ask that waits: what is asked, with all that a decision needs to know, and the decision. */
export function AskCard(props: { record: AskRecord; state?: SessionState; link?: boolean; answers?(): void }) {
  const asked = (): Requested => props.record.requested;
  const heading = createUniqueId();
  const [busy, setBusy] = createSignal(false);
  const [error, setError] = createSignal("");
  const [panel, setPanel] = createSignal<"" | "deny" | "edit">("");
  let card: HTMLElement | undefined;

  async function answer(given: Answer): Promise<void> {
    setBusy(true);
    setError("");
    props.answers?.();
    try {
      await decide(props.record, given);
    } catch (problem) {
      // the card of an ask that has ended is gone, and its words with it
      if (problem instanceof TrunklineError && LATE.has(problem.code)) say(`Too late: ${problem.message}`);
      else setError(problem instanceof Error ? problem.message : String(problem));
    } finally {
      setBusy(false);
    }
  }

  function onKey(event: KeyboardEvent): void {
    if (event.key === "Escape" && panel() !== "") {
      setPanel("");
      card?.focus();
      event.preventDefault();
      return;
    }
    const typing = (event.target as Element).matches("input, textarea, select");
    if (typing || event.repeat || event.ctrlKey || event.metaKey || event.altKey || !mayDecide() || busy()) return;
    if (props.record.kind === "question") return;
    if (event.key === "a") void answer(allow(asked()));
    else if (event.key === "d") setPanel("deny");
    else if (event.key === "e" && editable() !== undefined) setPanel("edit");
    else return;
    event.preventDefault();
  }

  const needed = () => (props.record.routed?.role ?? "approver") as Role;
  const unsigned = () => props.record.routed?.signed === true && !hello()?.device;
  const mayDecide = () => may(needed()) && !unsigned();
  const editable = createMemo(() => {
    const { input } = asked();
    return props.record.kind === "permission" && typeof input === "object" && input !== null ? input : undefined;
  });

  return (
    <article class="ask" ref={card} aria-labelledby={heading} tabindex="0" onKeyDown={onKey} data-ask={props.record.ask}>
      <header>
        <Icon name={props.record.kind === "question" ? "question" : props.record.kind === "plan" ? "list" : "shield"} />
        <h2 id={heading}>
          <Switch>
            <Match when={props.record.kind === "question"}>The agent asks</Match>
            <Match when={props.record.kind === "plan"}>A plan to approve</Match>
            <Match when={true}>
              Allow <b>{visible(asked().name ?? "this")}</b>?
            </Match>
          </Switch>
        </h2>
        <Show when={props.record.lane}>
          <span class="chip">subagent</span>
        </Show>
        <Show when={(props.record.routed?.quorum ?? 1) > 1}>
          <span class="chip">needs {props.record.routed?.quorum} people</span>
        </Show>
      </header>
      <Show when={props.state}>
        {(state) => (
          <p class="context">
            <Show when={props.link} fallback={<b>{unturned(state().title ?? "")}</b>}>
              <a href={`/session/${state().session}`}>{unturned(state().title ?? state().session)}</a>
            </Show>
            <span>{state().agent ?? state().adapter}</span>
            <span class="path">{visible(state().cwd ?? "")}</span>
          </p>
        )}
      </Show>
      <Body record={props.record} />
      <Show
        when={mayDecide()}
        fallback={
          <p class="hint">
            {unsigned()
              ? "A policy wants this signed by a registered device: sign this browser in by a link."
              : `Deciding needs the role ${needed()}; yours is ${hello()?.role}.`}
          </p>
        }
      >
        <Show when={props.record.kind === "question"}>
          <Questions requested={asked()} busy={busy()} answer={(given) => void answer(given)} />
        </Show>
        <Show when={props.record.kind !== "question"}>
          <div class="buttons">
            <button type="button" class="allow" disabled={busy()} onClick={() => void answer(allow(asked()))}>
              <Icon name="check" />
              {props.record.kind === "plan" ? "Approve" : "Allow"}
            </button>
            <button type="button" class="deny" disabled={busy()} onClick={() => setPanel(panel() === "deny" ? "" : "deny")}>
              <Icon name="cross" />
              Deny
            </button>
            <Show when={editable()}>
              <button type="button" disabled={busy()} onClick={() => setPanel(panel() === "edit" ? "" : "edit")}>
                <Icon name="edit" />
                Edit
              </button>
            </Show>
          </div>
          <Show when={panel() === "deny"}>
            <Denial busy={busy()} deny={(words) => void answer(deny(asked(), words))} />
          </Show>
          <Show when={panel() === "edit" && editable()}>
            {(input) => <Editing input={input()} busy={busy()} allow={(given) => void answer(allow(asked(), given))} />}
          </Show>
          <Options record={props.record} busy={busy()} answer={(given) => void answer(given)} />
        </Show>
      </Show>
      <Show when={error()}>
        <p class="error" role="alert">
          {error()}
        </p>
      </Show>
    </article>
  );
}

/** What is asked. */
function Body(props: { record: AskRecord }) {
  const asked = (): Requested => props.record.requested;
  const command = () => commandOf(asked().input);
  const changes = createMemo(() => changesOf(asked().input));
  return (
    <>
      <Show when={asked().reason ?? asked().description}>
        {(words) => (
          <p class="why" dir="auto">
            {unturned(words())}
          </p>
        )}
      </Show>
      <Show when={asked().message}>
        <Markdown text={asked().message ?? ""} />
      </Show>
      <Show when={props.record.kind === "plan"}>
        <div class="plan-text">
          <Whole text={asked().plan}>{(text) => <Markdown text={text()} />}</Whole>
        </div>
      </Show>
      <Show when={command()}>{(line) => <pre class="command">{visible(line())}</pre>}</Show>
      <For each={changes()}>{(change) => <Diff change={change} />}</For>
      <Show when={props.record.kind === "permission" && !command() && changes().length === 0}>
        {/* Where the input says nothing, the agent's own word for it is all that one knows. */}
        <Show when={pathOf(asked().input) ?? asked().title}>{(words) => <pre class="command">{visible(words())}</pre>}</Show>
      </Show>
      <Show when={props.record.kind === "permission" && asked().input !== undefined && asked().input !== null}>
        <details class="raw">
          <summary>The whole input</summary>
          <Long text={visible(JSON.stringify(asked().input, null, 2))} />
        </details>
      </Show>
    </>
  );
}

/** "Allow always", with the rule that it makes, and whatever else the agent offers. */
function Options(props: { record: AskRecord; busy: boolean; answer(given: Answer): void }) {
  const options = () => further(props.record.requested);
  return (
    <Show when={options().length > 0}>
      <div class="options">
        <For each={options()}>
          {(option) => (
            <button type="button" class="option" disabled={props.busy} onClick={() => props.answer(choose(option))}>
              <span>{visible(option.name ?? option.id)}</span>
              <Show when={rulesBy(option, props.record.requested).length > 0}>
                <span class="rule">
                  adds <For each={rulesBy(option, props.record.requested)}>{(rule) => <code>{visible(rule)}</code>}</For>
                </span>
              </Show>
            </button>
          )}
        </For>
      </div>
    </Show>
  );
}

function Denial(props: { busy: boolean; deny(words: string): void }) {
  const [words, setWords] = createSignal("");
  return (
    <form
      class="panel"
      onSubmit={(event) => {
        event.preventDefault();
        props.deny(words());
      }}
    >
      <label>
        What the agent is told
        <textarea
          rows="2"
          ref={(place) => queueMicrotask(() => place.focus())}
          value={words()}
          onInput={(event) => setWords(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            event.currentTarget.form?.requestSubmit();
          }}
          placeholder="optional"
        />
      </label>
      <button class="deny" disabled={props.busy}>
        Deny
      </button>
    </form>
  );
}

/** Another input than the agent proposed: its command as text, all else as JSON. */
function Editing(props: { input: object; busy: boolean; allow(input: unknown): void }) {
  const command = "command" in props.input && typeof props.input.command === "string" ? props.input.command : undefined;
  const [text, setText] = createSignal(command ?? JSON.stringify(props.input, null, 2));
  const [wrong, setWrong] = createSignal("");
  function submit(event: Event): void {
    event.preventDefault();
    try {
      props.allow(command === undefined ? JSON.parse(text()) : { ...props.input, command: text() });
    } catch {
      setWrong("This is no JSON.");
    }
  }
  return (
    <form class="panel" onSubmit={submit}>
      <label>
        {command === undefined ? "The input, as JSON" : "The command"}
        <textarea
          class="code"
          rows={command === undefined ? 8 : 3}
          spellcheck={false}
          ref={(place) => queueMicrotask(() => place.focus())}
          value={text()}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <Show when={wrong()}>
        <p class="error" role="alert">
          {wrong()}
        </p>
      </Show>
      <button class="allow" disabled={props.busy}>
        Allow this instead
      </button>
    </form>
  );
}
