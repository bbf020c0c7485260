import { createUniqueId, For, Show } from "solid-js";
import { unturned } from "../model/format";
import { createStore } from "solid-js/store";
import type { Question, Requested } from "../client/protocol";
import { answers, deny, type Answer, type Given } from "../model/answers";

const NOTHING: Given = { chosen: [], words: "" };

/** The questions of an agent, with options and one's own words. */
export function Questions(props: { requested: Requested; busy: boolean; answer(given: Answer): void }) {
  const [given, setGiven] = createStore<Record<string, Given>>({});
  const questions = () => props.requested.questions ?? [];
  const ready = () => answers(questions(), given);
  const of = (id: string) => given[id] ?? NOTHING;

  function pick(question: Question, label: string, on: boolean): void {
    const { chosen, words } = of(question.id);
    if (!question.multiple) setGiven(question.id, { chosen: on ? [label] : [], words: "" });
    else setGiven(question.id, { chosen: on ? [...chosen, label] : chosen.filter((one) => one !== label), words });
  }

  return (
    <form
      class="questions"
      onSubmit={(event) => {
        event.preventDefault();
        const all = ready();
        if (all !== undefined) props.answer(all);
      }}
    >
      <For each={questions()}>
        {(question) => (
          <One question={question} given={of(question.id)} pick={pick} say={(words) => {
            const chosen = question.multiple ? of(question.id).chosen : [];
            setGiven(question.id, { chosen: words && !question.multiple ? [] : chosen, words });
          }} />
        )}
      </For>
      <div class="buttons">
        <button class="allow" disabled={props.busy || (questions().length > 0 && ready() === undefined)}>
          Answer
        </button>
        <button type="button" class="deny" disabled={props.busy} onClick={() => props.answer({ behaviour: deny(props.requested).behaviour })}>
          Decline
        </button>
      </div>
    </form>
  );
}

function One(props: {
  question: Question;
  given: Given;
  pick(question: Question, label: string, on: boolean): void;
  say(words: string): void;
}) {
  const name = createUniqueId();
  return (
    <fieldset>
      <legend dir="auto">
        <Show when={props.question.header}>
          <span class="chip">{unturned(props.question.header ?? "")}</span>
        </Show>
        {unturned(props.question.text)}
      </legend>
      <For each={props.question.options ?? []}>
        {(option) => (
          <label class="choice">
            <input
              type={props.question.multiple ? "checkbox" : "radio"}
              name={name}
              checked={props.given.chosen.includes(option.label)}
              onChange={(event) => props.pick(props.question, option.label, event.currentTarget.checked)}
            />
            <span dir="auto">
              {unturned(option.label)}
              <Show when={option.description}>
                <small>{unturned(option.description ?? "")}</small>
              </Show>
            </span>
          </label>
        )}
      </For>
      <Show when={props.question.free_text !== false}>
        <input
          type="text"
          aria-label={`Your own answer to: ${props.question.text}`}
          placeholder={props.question.options?.length ? "or in your own words" : "your answer"}
          value={props.given.words}
          onInput={(event) => props.say(event.currentTarget.value)}
        />
      </Show>
    </fieldset>
  );
}
