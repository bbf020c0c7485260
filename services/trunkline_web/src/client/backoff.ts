/** How long to wait before the next try, in milliseconds: 1, 2, 4, 8, 16, 30, 30 … seconds. */
export function delayOf(failures: number): number {
  return Math.min(30_000, 1000 * 2 ** Math.max(0, failures - 1));
}
