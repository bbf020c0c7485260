/**
 * Markdown of agents as HTML that can do nothing: raw HTML is shown as the text it is, pictures become links (a picture that is
 * fetched tells who reads), links open outside, and what comes of it is sanitised by a library all the same.
 */

import DOMPurify from "dompurify";
import { parse, type Parsed } from "./parsing";

const TAGS = [
  ...["a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre"],
  ...["span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"],
];

/** A text in an element: drawn again with more to it, only the blocks that changed are made anew. */
export class Drawing {
  private parsed: Parsed = { links: "", blocks: [] };
  private readonly nodes: ChildNode[][] = [];

  constructor(private readonly place: HTMLElement) {}

  draw(text: string): void {
    this.put(parse(text, this.parsed));
  }

  put(parsed: Parsed): void {
    const drawn = this.parsed.blocks;
    let same = 0;
    while (same < drawn.length && drawn[same]?.html === parsed.blocks[same]?.html) same++;
    for (const nodes of this.nodes.splice(same)) for (const node of nodes) node.remove();
    for (const { html } of parsed.blocks.slice(same)) {
      const fragment = safe(html);
      this.nodes.push([...fragment.childNodes]);
      this.place.append(fragment);
    }
    this.parsed = parsed;
  }
}

/** Safe HTML, as nodes: what was checked is what is shown. */
function safe(html: string): DocumentFragment {
  const fragment = DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ["href", "class", "align", "start"],
    ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const link of fragment.querySelectorAll("a")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer";
  }
  return fragment;
}

const LIGHT = 20_000;
const MARKS = 400;
const LIMIT_MS = 3_000;

/** Whether a text is parsed in a few milliseconds, whatever it is made of: marks that open and close cost the most. */
export function isLight(text: string): boolean {
  if (text.length > LIGHT) return false;
  let marks = 0;
  for (const _ of text.matchAll(/[*_~]+/g)) if (++marks > MARKS) return false;
  return true;
}

let queue: Promise<unknown> = Promise.resolve();
let worker: Worker | undefined;

/** A text parsed beside the page, one after the other. Rejects where that takes too long. */
export function parseApart(text: string): Promise<Parsed> {
  const next = queue.then(() => inWorker(text));
  queue = next.catch(() => undefined);
  return next;
}

function inWorker(text: string): Promise<Parsed> {
  return new Promise((resolve, reject) => {
    const mine = (worker ??= new Worker(new URL("./parser.worker.ts", import.meta.url), { type: "module" }));
    const give = (error: unknown): void => {
      clearTimeout(timer);
      mine.terminate();
      worker = undefined;
      reject(error);
    };
    const timer = setTimeout(() => give(new Error("it takes too long")), LIMIT_MS);
    mine.onerror = (event) => give(new Error(event.message));
    mine.onmessage = ({ data }: MessageEvent<Parsed>) => {
      clearTimeout(timer);
      resolve(data);
    };
    mine.postMessage(text);
  });
}
