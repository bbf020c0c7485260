/** What a device signs when its owner answers an ask (trunkline_wire/signing.py says it in words): all that the answer says. */

const CHOICE = ["option", "updated_input", "rule_updates", "answers", "message", "interrupt"];

export interface Signed {
  id: string;
  ask: string;
  behaviour: string;
  [choice: string]: unknown;
}

/** The HMAC-SHA256 of an answer under a device's key, as hex. */
export async function answerMac(key: CryptoKey, answer: Signed, time: string, nonce: string): Promise<string> {
  const chosen = hex(await crypto.subtle.digest("SHA-256", utf8(canonical(choiceOf(answer)))));
  const text = ["trunkline-answer-2", answer.id, answer.ask, answer.behaviour, time, nonce, chosen].join("\n");
  return hex(await crypto.subtle.sign("HMAC", key, utf8(text)));
}

/** JSON in its canonical form (RFC 8785). */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const fields = value as Record<string, unknown>;
  const keys = Object.keys(fields).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(fields[key])}`).join()}}`;
}

function choiceOf(answer: Signed): Record<string, unknown> {
  const has = (name: string) => answer[name] !== undefined && answer[name] !== null && answer[name] !== false;
  return Object.fromEntries(CHOICE.filter(has).map((name) => [name, answer[name]]));
}

const utf8 = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);
const hex = (buffer: ArrayBuffer): string =>
  [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
