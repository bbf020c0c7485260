import { createSignal, Match, onCleanup, Show, Switch } from "solid-js";
import { isPaired } from "../seal/record";
import { newWorker } from "../seal/remote";
import { servedApp } from "../seal/app";
import { same } from "../seal/bytes";
import type { Order, Report } from "../seal/worker";

type Step = { at: "reading" } | { at: "asking" } | { at: "reaching" } | { at: "comparing"; code: string; host: string } | { at: "failed"; why: string };

const WORDS: Record<string, string> = {
  bad_params: "This is no pairing link, or only a part of one.",
  bad_pairing: "The host refused: the link is too old, was used before, or the code was not confirmed.",
  bad_seal: "Who answered is not the host of this link, or somebody changed what it said.",
  host_away: "The host is not connected to its relay.",
  timeout: "Nobody answered in time.",
  other_app: "This relay serves another app than the host vouches for. Nothing was sent to it.",
};

/** Messages are padded to a multiple of so many bytes where lengths are to be hidden. */
const PAD = 256;

/** Makes this browser a device of the host whose link was opened. `url` is the link, which no longer stands in the address. */
export function Pair(props: { url: string }) {
  const [step, setStep] = createSignal<Step>({ at: "reading" });
  const [fingerprint, setFingerprint] = createSignal("");
  const [name, setName] = createSignal(deviceName());
  const [hidden, setHidden] = createSignal(false);
  const [known, setKnown] = createSignal(false);
  const worker = newWorker();
  const order = (what: Order): void => worker.postMessage(what);
  const fail = (code: string, message: string): void => {
    setStep({ at: "failed", why: `${WORDS[code] ?? message} (${code})` });
  };
  worker.onmessage = ({ data: said }: MessageEvent<Report>) => {
    if (said.say === "host") void look(said.fingerprint, said.app);
    else if (said.say === "code") setStep({ at: "comparing", code: said.code, host: said.host });
    else if (said.say === "paired") location.replace("/");
    else if (said.say === "failed") fail(said.code, said.message);
  };
  worker.onerror = () => fail("unsupported", "This browser can't run the app's encryption.");
  onCleanup(() => worker.terminate());
  order({ do: "look", url: props.url });
  void isPaired().then(setKnown);

  async function look(print: string, app: Uint8Array): Promise<void> {
    const vouched = app.some((byte) => byte !== 0);
    if (vouched && !same(app, await servedApp().catch(() => new Uint8Array()))) {
      fail("other_app", "");
      return;
    }
    setFingerprint(print);
    setStep({ at: "asking" });
  }

  const compared = () => {
    const now = step();
    return now.at === "comparing" ? now : undefined;
  };
  const failed = () => {
    const now = step();
    return now.at === "failed" ? now : undefined;
  };
  return (
    <main class="sign-in">
      <img src="/icon.svg" alt="" width="56" height="56" />
      <h1>Pair this browser</h1>
      <Show when={fingerprint()}>
        <p>
          The host's fingerprint: <code>{fingerprint()}</code>
        </p>
      </Show>
      <Switch fallback={<p role="status">Reading the link …</p>}>
        <Match when={step().at === "asking"}>
          <Show when={known()}>
            <p class="error">This browser is paired with a host already, and will forget it.</p>
          </Show>
          <form
            onSubmit={(event) => {
              event.preventDefault();
              setStep({ at: "reaching" });
              order({ do: "pair", url: props.url, name: name().trim(), pad: hidden() ? PAD : 0 });
            }}
          >
            <label>
              Name of this device
              <input required maxlength="64" value={name()} onInput={(event) => setName(event.currentTarget.value)} />
            </label>
            <label class="choice">
              <input type="checkbox" checked={hidden()} onChange={(event) => setHidden(event.currentTarget.checked)} />
              <span>
                Hide lengths
                <small>The relay then can't guess by its length what a message is. Each takes a little more data.</small>
              </span>
            </label>
            <button class="primary">Pair</button>
          </form>
        </Match>
        <Match when={step().at === "reaching"}>
          <p role="status">Reaching the host …</p>
        </Match>
        <Match when={compared()}>
          {(now) => (
            <>
              <p>{now().host} shows six digits. Say yes there only if they are these:</p>
              <p class="pair-code">
                <strong>{now().code}</strong>
              </p>
              <p role="status">Waiting for the host …</p>
            </>
          )}
        </Match>
        <Match when={failed()}>
          {(now) => (
            <>
              <p class="error" role="alert">
                {now().why}
              </p>
              <p>
                <code>trunkline pair</code> at the host makes another link.
              </p>
            </>
          )}
        </Match>
      </Switch>
    </main>
  );
}

function deviceName(): string {
  const agent = navigator.userAgent;
  const browser = /Firefox|Edg|Chrome|Safari/.exec(agent)?.[0]?.replace("Edg", "Edge") ?? "Browser";
  const system = /Android|iPhone|iPad|Windows|Mac|Linux/.exec(agent)?.[0];
  return system ? `${browser} on ${system}` : browser;
}
