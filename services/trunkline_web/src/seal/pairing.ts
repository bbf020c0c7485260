/** How this browser comes to know a host: by a link of `trunkline pair`, and six digits that a person compares. */

import { TrunklineError } from "trunkline-client";
import { fromBase64, toBase64 } from "./bytes";
import { identityOf, KEY_BYTES, randomBytes, ready, routeOf } from "./keys";
import { commitment, NONCE_BYTES, pairingName, type PairingLink, shortCode } from "./link";
import { keep, vouch } from "./record";
import { CutError, identityIn, reach, refusal, type Said } from "./wire";

const REACH_MS = 15_000;

/** Pairs, and keeps the host's record, with `pad`. `show` gets the six digits, and the host's name. Throws TrunklineError. */
export async function pair(link: PairingLink, name: string, pad: number, show: (code: string, host: string) => void): Promise<void> {
  await ready;
  const identity = identityOf(randomBytes(KEY_BYTES));
  const route = routeOf(randomBytes(KEY_BYTES));
  const key = randomBytes(KEY_BYTES);
  const number = randomBytes(NONCE_BYTES);
  const { wire, about } = await within(
    reach({
      relay: link.relay,
      route: link.route,
      host: link.identity,
      identity,
      about: {
        pair: toBase64(link.secret),
        route: toBase64(route.public),
        commit: toBase64(commitment(number)),
        name,
        key: toBase64(key),
      },
      proof: () => ({ type: "pairing", pairing: pairingName(link.secret) }),
    }),
  );
  try {
    wire.say({ reveal: toBase64(number) });
    const numbers: [Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>] = [fromBase64(about.nonce), number];
    show(shortCode([link.route, link.identity], [route.public, identity.public], numbers), String(about.host));
    const made = answered(await wire.hear());
    const { device, actor, role, token, host } = made;
    const [newest, count] = identityIn(about);
    const known = { relay: link.relay, route: link.route, identity: newest, number: count, pad };
    await keep({ ...known, host, device, actor, role, seed: route.secret, secret: identity.secret, token }, key);
    await vouch(link.app, true);
  } catch (error) {
    if (!(error instanceof CutError)) throw error;
    throw new TrunklineError("bad_pairing", "the host ended the pairing: `trunkline pair` makes another link");
  } finally {
    wire.close();
  }
}

function answered(said: Said): Said {
  if (said.failed !== undefined) throw refusal(said.failed);
  if (said.paired === undefined) throw new TrunklineError("bad_frame", "the host says neither yes nor no");
  return said.paired as Said;
}

async function within<T>(work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TrunklineError("timeout", "the relay or the host does not answer")), REACH_MS);
  });
  try {
    return await Promise.race([work, late]);
  } catch (error) {
    throw error instanceof CutError ? new TrunklineError("host_away", "the relay does not answer, or has no such host") : error;
  } finally {
    clearTimeout(timer);
  }
}
