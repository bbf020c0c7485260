// What a device signs when its owner answers an ask (trunkline_wire/signing.py says it in words).
"use strict";

const CHOICE = ["option", "updated_input", "rule_updates", "answers", "message", "interrupt"];

// JSON in its canonical form (RFC 8785).
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join()}}`;
}

function choice(answer) {
  const has = (name) => answer[name] !== undefined && answer[name] !== null && answer[name] !== false;
  return Object.fromEntries(CHOICE.filter(has).map((name) => [name, answer[name]]));
}

const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");

async function answerMac(key, answer, time, nonce) {
  const bytes = (text) => new TextEncoder().encode(text);
  const chosen = hex(await crypto.subtle.digest("SHA-256", bytes(canonical(choice(answer)))));
  const text = ["trunkline-answer-2", answer.id, answer.ask, answer.behaviour, time, nonce, chosen].join("\n");
  return hex(await crypto.subtle.sign("HMAC", key, bytes(text)));
}

const newId = () => `cmd_${hex(crypto.getRandomValues(new Uint8Array(16)))}`;
