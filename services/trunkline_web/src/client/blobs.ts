/** Large values, which stand in events as references: fetched whole when somebody wants to see them. */

import type { Line } from "./connection";
import type { BlobRef } from "./protocol";

/** Bytes above which a value is not brought into a page. */
export const MOST = 8 * 1024 * 1024;

interface Piece {
  data: string;
  next?: string | null;
}

export async function whole(line: Line, blob: BlobRef): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let after: string | null | undefined;
  do {
    const piece: Piece = await line.call("blob.get", { sha256: blob.sha256, ...(after && { after }) });
    pieces.push(Uint8Array.from(atob(piece.data), (sign) => sign.charCodeAt(0)));
    after = piece.next;
  } while (after);
  return new Uint8Array(await new Blob(pieces as BlobPart[]).arrayBuffer());
}
