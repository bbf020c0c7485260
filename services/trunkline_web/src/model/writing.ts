/**
 * Text under way: pieces laid into a block, counted in Unicode code points. Pure.
 *
 * A piece that begins where the known text ends is appended; one that overlaps is laid over it and never shortens it; one that
 * begins beyond the end leaves a hole: what is known is that piece alone. A piece that ends before what is known is of no use.
 */

export interface Writing {
  /** The code point from which on the text is known; above 0 there is a hole before it. */
  at: number;
  text: string;
  /** Code points of `text`. */
  length: number;
}

export function begin(at: number, text: string): Writing {
  return { at, text, length: points(text) };
}

export function lay(known: Writing, at: number, text: string): Writing {
  const end = known.at + known.length;
  const length = points(text);
  if (at === end) return { at: known.at, text: known.text + text, length: known.length + length };
  if (at > end) return { at, text, length };
  if (at >= known.at && known.text.length === known.length && text.length === length) {
    // no code point has two units: what stays is cut out as it is
    const kept = known.text.slice(0, at - known.at) + text + known.text.slice(at - known.at + length);
    return { at: known.at, text: kept, length: kept.length };
  }
  if (at >= known.at) {
    const all = [...known.text];
    all.splice(at - known.at, length, ...text);
    return { at: known.at, text: all.join(""), length: all.length };
  }
  if (at + length < known.at) return known;
  const rest = [...known.text].slice(at + length - known.at);
  return { at, text: text + rest.join(""), length: length + rest.length };
}

function points(text: string): number {
  let count = text.length;
  for (let index = 0; index < text.length; index++) {
    // the first half of a surrogate pair
    if ((text.charCodeAt(index) & 0xfc00) === 0xd800 && (text.charCodeAt(index + 1) & 0xfc00) === 0xdc00) count--;
  }
  return count;
}
