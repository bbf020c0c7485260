/** The long-lived keys of host and device, as trunkline_seal/keys.py has them. Whoever calls has awaited `ready`. */

import sodium from "libsodium-wrappers";
import { type Bytes, joined, toBase32, utf8 } from "./bytes";

export const ready: Promise<void> = sodium.ready;
export const KEY_BYTES = 32;

const owned = (bytes: Uint8Array): Bytes => new Uint8Array(bytes);

export interface Pair {
  public: Bytes;
  /** Of an identity its secret key, of a route its seed. */
  secret: Bytes;
}

export const randomBytes = (size: number): Bytes => crypto.getRandomValues(new Uint8Array(size));

/** X25519. */
export const identityOf = (secret: Bytes): Pair => ({ public: owned(sodium.crypto_scalarmult_base(secret)), secret });

/** Ed25519. */
export const routeOf = (seed: Bytes): Pair => ({ public: owned(sodium.crypto_sign_seed_keypair(seed).publicKey), secret: seed });

export const signed = (route: Pair, message: Uint8Array): Bytes =>
  owned(sodium.crypto_sign_detached(message, sodium.crypto_sign_seed_keypair(route.secret).privateKey));

/** generichash of `purpose`, a zero byte and the parts. */
export const digest = (purpose: string, parts: Uint8Array[], size = 32, key: Uint8Array | null = null): Bytes =>
  owned(sodium.crypto_generichash(size, joined(utf8(purpose), new Uint8Array(1), ...parts), key));

export const hostName = (route: Uint8Array): string => `hst_${toBase32(digest("trunkline-host", [route], 16)).toLowerCase()}`;

export const fingerprint = (identity: Uint8Array): string =>
  toBase32(digest("trunkline-fingerprint", [identity], 15)).match(/.{4}/g)!.join(" ");
