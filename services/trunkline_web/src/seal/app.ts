/** What this address serves as the app: the digest that a host vouches for, as trunkline_seal/app_digest.py has it. */

import { type Bytes, utf8 } from "./bytes";

export interface Manifest {
  /** SHA-256 of each file of the build, in hex, by its path. */
  files: Record<string, string>;
}

export async function appDigest({ files }: Manifest): Promise<Bytes> {
  const lines = Object.keys(files)
    .sort()
    .map((path) => `${path} ${files[path]}\n`);
  return new Uint8Array(await crypto.subtle.digest("SHA-256", utf8(lines.join(""))));
}

/** Of the manifest that is served here. */
export async function servedApp(): Promise<Bytes> {
  const answer = await fetch("/app.json", { cache: "reload" });
  return appDigest((await answer.json()) as Manifest);
}
