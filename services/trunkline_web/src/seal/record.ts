/**
 * The host that this browser is paired with. What is secret of it is encrypted under a key that the browser gives to nobody, not
 * even to us as bytes: a copy of the database is of no use without this browser. It needs no libsodium.
 */

import { kept, signingKey } from "../client/kept";
import { type Bytes, fromBase64, text, toBase64, utf8 } from "./bytes";

export interface Paired {
  relay: string;
  host: string;
  route: Bytes;
  /** The host's newest identity. */
  identity: Bytes;
  /** That of the identity; none of a host that did not count them when it was learned. */
  number?: number;
  device: string;
  actor: string;
  role: string;
  /** Of the device's route key. */
  seed: Bytes;
  /** Of the device's identity. */
  secret: Bytes;
  token: string;
  /** Messages are padded to a multiple of so many bytes, or of more if the host wants it. */
  pad?: number;
}

/** Digests of the app, base64, that the host has vouched for, the latest last; the service worker serves no other. */
const APPS = "apps";
const MOST_APPS = 2;
const HOST = "host";

interface Kept extends Omit<Paired, "seed" | "secret" | "token"> {
  wrapping: CryptoKey;
  iv: Bytes;
  secrets: ArrayBuffer;
}

export async function keep({ seed, secret, token, ...open }: Paired, signing: Bytes): Promise<void> {
  const wrapping = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
  const iv = crypto.getRandomValues(new Uint8Array(12));
  const plain = utf8(JSON.stringify({ seed: toBase64(seed), secret: toBase64(secret), token }));
  const secrets = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, wrapping, plain);
  const key = await signingKey(signing);
  await kept("readwrite", (store) => store.put({ ...open, wrapping, iv, secrets } satisfies Kept, HOST));
  await kept("readwrite", (store) => store.put({ device: open.device, key }, "device"));
}

export async function load(): Promise<Paired | undefined> {
  const found = await kept<Kept | undefined>("readonly", (store) => store.get(HOST));
  if (found === undefined) return undefined;
  const { wrapping, iv, secrets, ...open } = found;
  const said = JSON.parse(text(new Uint8Array(await crypto.subtle.decrypt({ name: "AES-GCM", iv }, wrapping, secrets))));
  return { ...open, seed: fromBase64(said.seed), secret: fromBase64(said.secret), token: said.token };
}

/**
 * Keeps the host's newest identity, unless a newer one is known: a slow connection tells late. Only as long as this browser is still
 * this device: what was forgotten or paired anew meanwhile stays so. Hosts that don't count their identities say 0.
 */
export async function learn(device: string, identity: Bytes, number: number): Promise<void> {
  await kept<Kept | undefined>("readwrite", (store) => {
    const found: IDBRequest<Kept | undefined> = store.get(HOST);
    found.addEventListener("success", () => {
      const late = number > 0 && number <= (found.result?.number ?? 0);
      if (found.result?.device === device && !late) store.put({ ...found.result, identity, number }, HOST);
    });
    return found;
  });
}

/** Keeps that the host vouches for an app; a pairing forgets what another host has vouched for. */
export async function vouch(app: Bytes, anew = false): Promise<void> {
  if (app.every((byte) => byte === 0)) return;
  const before = anew ? [] : ((await kept<string[] | undefined>("readonly", (store) => store.get(APPS))) ?? []);
  const now = toBase64(app);
  if (before.at(-1) === now) return;
  await kept("readwrite", (store) => store.put([...before.filter((one) => one !== now), now].slice(-MOST_APPS), APPS));
}

/** Whether this browser goes to a host by a relay. */
export async function isPaired(): Promise<boolean> {
  try {
    return (await kept("readonly", (store) => store.getKey(HOST))) !== undefined;
  } catch {
    return false; // a browser that keeps nothing
  }
}

export async function forget(): Promise<void> {
  for (const name of [HOST, "device", APPS]) await kept("readwrite", (store) => store.delete(name));
}
