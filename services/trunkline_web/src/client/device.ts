/**
 * A browser that signed in by a link is a device: its key never leaves it, and signs what is decided here.
 *
 * The key lies in IndexedDB as a CryptoKey that can't be read out. Only pages of https and of this machine have WebCrypto;
 * elsewhere nothing is registered and nothing is signed.
 */

import { isRevoked, type Line } from "./connection";
import { kept as keys, signingKey } from "./kept";
import { answerMac, type Signed } from "./signing";

interface Kept {
  device: string;
  key: CryptoKey;
}

export interface Signature {
  device: string;
  time: string;
  nonce: string;
  mac: string;
}

/** A new key, and what registers it; nothing where the browser has no WebCrypto. */
async function newKey(): Promise<{ key?: CryptoKey; registered?: string }> {
  if (globalThis.crypto?.subtle === undefined) return {};
  const raw = crypto.getRandomValues(new Uint8Array(32));
  const key = await signingKey(raw);
  return { key, registered: btoa(String.fromCharCode(...raw)) };
}

/** Redeems the code of a sign-in link: a cookie that scripts can't read, and a registered device. Throws with the gateway's words. */
export async function redeem(code: string): Promise<void> {
  const made = await newKey();
  const answer = await fetch("/sign-in", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ code, device: navigator.platform || "browser", key: made.registered }),
  });
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.detail);
  const { key } = made;
  if (key !== undefined) {
    await keys("readwrite", (store) => store.put({ device: said.device, key } satisfies Kept, "device"));
  }
}

/** Ends this browser's sign-in at the gateway. */
export async function leave(): Promise<void> {
  await fetch("/sign-out", { method: "POST" });
}

/** Until a host that does not answer is taken for one that can't be told. */
const UNPAIR_MS = 5_000;

/** Has the host revoke this browser, which is paired with it; false where it could not be told, and still lists the device. */
export async function unpair(line: Line): Promise<boolean> {
  const id = line.hello?.device;
  if (!id) return false;
  try {
    await line.request("device.revoke", { id }, UNPAIR_MS);
    return true;
  } catch (error) {
    return isRevoked(error); // the connection may end before its answer
  }
}

/** The device's word for an answer; undefined where this browser is no device, or not the one of the connection. */
export async function sign(line: Line, answer: Signed): Promise<Signature | undefined> {
  const device = line.hello?.device;
  if (globalThis.crypto?.subtle === undefined || !device) return undefined;
  const kept = await keys<Kept | undefined>("readonly", (store) => store.get("device"));
  if (kept === undefined || kept.device !== device) return undefined;
  const { nonce, time } = await line.call("ask.nonce");
  return { device, time, nonce, mac: await answerMac(kept.key, answer, time, nonce) };
}
