/** Frames of one subscription that wait for whoever reads them: bounded. */

import type { Frame } from "./connection.js";

export const MOST_WAITING = 10_000;
export const MOST_CHARACTERS = 32 * 1024 * 1024;

/** Why no frame comes any more. */
export type End = "full" | "lost";

export class Queue {
  private frames: { frame: Frame; size: number }[] = [];
  private at = 0;
  private characters = 0;
  private end: End | undefined;
  private wake: (() => void) | undefined;

  constructor(private readonly most: number = MOST_WAITING) {}

  /** False if there is no room: then this one is not taken, and none after it. */
  push(frame: Frame, size: number): boolean {
    if (this.end !== undefined) return false;
    const full = this.frames.length - this.at >= this.most || this.characters + size > MOST_CHARACTERS;
    // One that is too large for any queue is still taken, if it is the only one.
    if (full && this.frames.length > this.at) {
      this.stop("full");
      return false;
    }
    this.frames.push({ frame, size });
    this.characters += size;
    this.wake?.();
    return true;
  }

  stop(end: End): void {
    this.end ??= end;
    this.wake?.();
  }

  /** The next frame, or why there is none: once everything before has been read. */
  async next(): Promise<Frame | End> {
    while (this.at === this.frames.length) {
      if (this.end !== undefined) return this.end;
      await new Promise<void>((resolve) => (this.wake = resolve));
      this.wake = undefined;
    }
    const { frame, size } = this.frames[this.at++]!;
    this.characters -= size;
    if (this.at > 1000 || this.at === this.frames.length) {
      this.frames = this.frames.slice(this.at);
      this.at = 0;
    }
    return frame;
  }
}
