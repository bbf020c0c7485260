/** What the browser keeps over reloads: drafts and prompts that have not reached the log. Storage may be full or forbidden. */

export function read<T>(key: string, otherwise: T): T {
  try {
    const found = localStorage.getItem(`trunkline.${key}`);
    return found === null ? otherwise : (JSON.parse(found) as T);
  } catch {
    return otherwise;
  }
}

export function write(key: string, value: unknown): void {
  try {
    if (value === undefined || value === "") localStorage.removeItem(`trunkline.${key}`);
    else localStorage.setItem(`trunkline.${key}`, JSON.stringify(value));
  } catch {
    // it lives until the page is closed, then
  }
}

/** Forgets all of it. */
export function clear(): void {
  try {
    for (const key of Object.keys(localStorage)) if (key.startsWith("trunkline.")) localStorage.removeItem(key);
  } catch {
    // then nothing is kept
  }
}

/** All that is kept under keys that begin so, in the order of the keys. */
export function all<T>(beginning: string): T[] {
  try {
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(`trunkline.${beginning}`));
    return keys.sort().map((key) => JSON.parse(localStorage.getItem(key) ?? "") as T);
  } catch {
    return [];
  }
}
