/** What this browser keeps beside its pages: a store of named values, CryptoKeys among them. */

export function kept<T>(mode: IDBTransactionMode, act: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open("trunkline", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("keys");
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const done = act(opening.result.transaction("keys", mode).objectStore("keys"));
      done.onsuccess = () => resolve(done.result);
      done.onerror = () => reject(done.error);
    };
  });
}

/** A device's key for what is decided here, as it is kept: it can't be read out. */
export const signingKey = (raw: Uint8Array<ArrayBuffer>): Promise<CryptoKey> =>
  crypto.subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
