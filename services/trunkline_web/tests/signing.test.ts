import { expect, test } from "vitest";
import { answerMac, canonical } from "../src/client/signing";

// Made with openssl: tests/unit/wire/test_signing.py says how.
test("a known answer", async () => {
  const key = await crypto.subtle.importKey(
    "raw",
    Uint8Array.from({ length: 32 }, (_, index) => index),
    { name: "HMAC", hash: "SHA-256" },
    false,
    ["sign"],
  );
  const answer = {
    id: "cmd_ffeeddccbbaa99887766554433221100",
    ask: "ask_00112233445566778899aabbccddeeff",
    behaviour: "allow",
    option: "yes",
    updated_input: { command: "ls /tmp/ö", b: [1, 0.5] },
    interrupt: false,
  };
  expect(await answerMac(key, answer, "2026-11-27T21:20:10Z", "000102030405060708090a0b0c0d0e0f")).toBe(
    "f8d15568f9a556405447146a4851a9bb1b8cad72870917be5ce772933d992889",
  );
});

test("keys are sorted by their code units, at every depth", () => {
  expect(canonical({ b: [{ z: 1, a: null }], a: "\u00f6" })).toBe('{"a":"ö","b":[{"a":null,"z":1}]}');
});
