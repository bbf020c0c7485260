import { createSignal, Show } from "solid-js";
import { signIn } from "../store/world";

/** For whoever is not signed in: how to be. */
export function SignIn(props: { why: string }) {
  const [token, setToken] = createSignal("");
  return (
    <main class="sign-in">
      <img src="/icon.svg" alt="" width="56" height="56" />
      <h1>Trunkline</h1>
      <p>
        Open the link that <code>trunkline sign-in</code> prints, or give a token. The owner's is in the file <code>token</code> of
        the state directory.
      </p>
      <Show when={props.why}>
        <p class="error" role="alert">
          {props.why}
        </p>
      </Show>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          signIn(token().trim());
        }}
      >
        <label>
          Token
          <input type="password" autocomplete="off" required value={token()} onInput={(event) => setToken(event.currentTarget.value)} />
        </label>
        <button class="primary">Sign in</button>
      </form>
    </main>
  );
}
