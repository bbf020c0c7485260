/** A pairing link, and what both ends show of a pairing, as trunkline_seal/pairing.py has them. */

import { TrunklineError } from "trunkline-client";
import { type Bytes, fromBase64, toHex } from "./bytes";
import { digest, KEY_BYTES } from "./keys";

export const SECRET_BYTES = 16;
export const NONCE_BYTES = 16;

export interface PairingLink {
  relay: string;
  route: Bytes;
  identity: Bytes;
  /** Digest of the app that the host vouches for; zeros: of none. */
  app: Bytes;
  secret: Bytes;
}

/** Throws `bad_params`. */
export function parseLink(url: string): PairingLink {
  const parts = URL.canParse(url.trim()) ? new URL(url.trim()) : undefined;
  const [, signs] = /^#1\.([A-Za-z0-9_-]+)$/.exec(parts?.hash ?? "") ?? [];
  let packed: Bytes = new Uint8Array();
  try {
    packed = fromBase64((signs ?? "").replaceAll("-", "+").replaceAll("_", "/"));
  } catch {
    // no base64
  }
  if (!parts || !/^https?:$/.test(parts.protocol) || packed.length !== 3 * KEY_BYTES + SECRET_BYTES) {
    throw new TrunklineError("bad_params", "this is no link of `trunkline pair`, or only a part of one");
  }
  const path = parts.pathname.replace(/\/pair$/, "").replace(/\/+$/, "");
  const [route, identity, app] = [0, 1, 2].map((at) => packed.slice(at * KEY_BYTES, (at + 1) * KEY_BYTES)) as [Bytes, Bytes, Bytes];
  return { relay: parts.origin + path, route, identity, app, secret: packed.slice(3 * KEY_BYTES) };
}

/** What the relay calls the pairing. */
export const pairingName = (secret: Uint8Array): string => `pair_${toHex(digest("trunkline-pairing", [secret], 16))}`;

export const commitment = (number: Uint8Array): Bytes => digest("trunkline-commitment", [number]);

/** Six digits: of route key and identity of host and device, and the numbers of both. */
export function shortCode(host: [Bytes, Bytes], device: [Bytes, Bytes], numbers: [Bytes, Bytes]): string {
  const whole = digest("trunkline-code", [...host, ...device, ...numbers], 16);
  const code = (BigInt(`0x${toHex(whole)}`) % 1_000_000n).toString().padStart(6, "0");
  return `${code.slice(0, 3)} ${code.slice(3)}`;
}
