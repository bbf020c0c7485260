/** Ids that a client mints: what is asked twice with one id has one effect. */

/** A UUIDv7 as 32 hex digits (RFC 9562). */
function uuid7(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  let millis = Date.now();
  for (let at = 5; at >= 0; at--) {
    bytes[at] = millis % 256;
    millis = Math.floor(millis / 256);
  }
  bytes[6] = 0x70 | (bytes[6]! & 0x0f);
  bytes[8] = 0x80 | (bytes[8]! & 0x3f);
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const newId = (prefix: string): string => `${prefix}_${uuid7()}`;
export const newCommandId = (): string => newId("cmd");
export const newSessionId = (): string => newId("ses");
