/** Files and pictures as blocks of a prompt. A prompt has at most 400 KB: pictures are made smaller until they fit. */

import type { Block } from "../client/protocol";

export interface Attachment {
  name: string;
  block: Block;
}

export const MOST = 380 * 1024;
const PICTURE = 220 * 1024;
const TEXT = 100 * 1024;
const SIDES = [1600, 1200, 800, 500];

/** Throws with words for a person where a file can't be sent. */
export async function attach(file: File): Promise<Attachment> {
  const name = file.name || "pasted";
  if (file.type.startsWith("image/")) {
    const small = await picture(file);
    return { name, block: { type: "image", media_type: small.type, data: await base64(small) } };
  }
  if (file.size > TEXT) throw new Error(`${name} is larger than 100 KB: put it into the project and name it.`);
  const text = await file.text();
  if (text.includes("\u0000")) throw new Error(`${name} is no text: put it into the project and name it.`);
  return { name, block: { type: "file", name, media_type: file.type || "text/plain", data: text } };
}

export const sizeOf = (attachments: Attachment[]): number =>
  attachments.reduce((sum, { block }) => sum + ("data" in block && typeof block.data === "string" ? block.data.length : 0), 0);

async function picture(file: File): Promise<Blob> {
  if (file.size <= PICTURE && !file.type.includes("svg")) return file;
  const bitmap = await createImageBitmap(file);
  try {
    for (const side of SIDES) {
      const scale = Math.min(1, side / Math.max(bitmap.width, bitmap.height));
      const canvas = new OffscreenCanvas(Math.round(bitmap.width * scale), Math.round(bitmap.height * scale));
      canvas.getContext("2d")?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
      const made = await canvas.convertToBlob({ type: "image/jpeg", quality: 0.82 });
      if (made.size <= PICTURE) return made;
    }
  } finally {
    bitmap.close();
  }
  throw new Error(`${file.name || "the picture"} can't be made small enough.`);
}

async function base64(blob: Blob): Promise<string> {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}
