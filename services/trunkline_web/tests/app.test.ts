import { expect, test } from "vitest";
import { appDigest } from "../src/seal/app";
import { toHex } from "../src/seal/bytes";

// Made with sha256sum: tests/unit/seal/test_app_digest.py says how.
test("an app's digest is that of Python", async () => {
  const files = { "index.html": "0b".repeat(32), "assets/a.js": "aa".repeat(32) };
  expect(toHex(await appDigest({ files }))).toBe("668eae00cce7f112d9806bd6578b445ed37b420fb21199c67d828c2a2f511806");
});
