/** Bytes, and how they are written: base64, hex, base32. */

export type Bytes = Uint8Array<ArrayBuffer>;

export const utf8 = (text: string): Bytes => new TextEncoder().encode(text);

/** Throws for what is no UTF-8. */
export const text = (bytes: Uint8Array): string => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);

export function joined(...parts: Uint8Array[]): Bytes {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export const toBase64 = (bytes: Uint8Array): string => {
  let signs = "";
  for (const byte of bytes) signs += String.fromCharCode(byte);
  return btoa(signs);
};

/** Throws for what is no base64. */
export const fromBase64 = (signs: string): Bytes => Uint8Array.from(atob(signs), (sign) => sign.charCodeAt(0));

export const toHex = (bytes: Uint8Array): string => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");

export const fromHex = (signs: string): Bytes => Uint8Array.from(signs.match(/../g) ?? [], (pair) => parseInt(pair, 16));

const BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** Without its `=`. */
export function toBase32(bytes: Uint8Array): string {
  let signs = "";
  let bits = 0;
  let value = 0;
  for (const byte of bytes) {
    value = (value << 8) | byte;
    bits += 8;
    for (; bits >= 5; bits -= 5) signs += BASE32[(value >> (bits - 5)) & 31];
    value &= (1 << bits) - 1;
  }
  return bits > 0 ? signs + BASE32[(value << (5 - bits)) & 31] : signs;
}

export const same = (one: Uint8Array, other: Uint8Array): boolean =>
  one.length === other.length && one.every((byte, at) => byte === other[at]);
