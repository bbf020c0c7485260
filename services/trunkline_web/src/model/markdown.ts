/**
 * Markdown of agents as HTML that can do nothing: raw HTML is shown as the text it is, pictures become links (a picture that is
 * fetched tells who reads), links open outside, and what comes of it is sanitised by a library all the same.
 */

import DOMPurify from "dompurify";
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import markdown from "highlight.js/lib/languages/markdown";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { Marked, type Token } from "marked";
import { unturned } from "./format";

const LANGUAGES = { bash, c, cpp, css, diff, go, java, javascript, json, markdown, python, ruby, rust, sql, typescript, xml, yaml };
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);

const MOST_HIGHLIGHTED = 20_000;
const TAGS = [
  ...["a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre"],
  ...["span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"],
];

const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

const marked = new Marked({ gfm: true, breaks: false, async: false });
marked.use({
  renderer: {
    html: ({ text }) => escaped(text),
    image: ({ href, text }) => `<a href="${escaped(href)}">${escaped(text || href)}</a>`,
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
    code: ({ text, lang }) => `<pre><code class="hljs">${highlighted(text, lang)}</code></pre>`,
  },
});

/** Code with its words marked; what is long or of no known language stays plain. */
export function highlighted(text: string, language: string | undefined): string {
  const name = language?.trim().split(/\s/, 1)[0] ?? "";
  if (text.length > MOST_HIGHLIGHTED || hljs.getLanguage(name) === undefined) return escaped(text);
  return hljs.highlight(text, { language: name, ignoreIllegals: true }).value;
}

/** The language of a file, by its name. */
export function languageOf(path: string): string | undefined {
  const ending = path.split(".").pop() ?? "";
  return hljs.getLanguage(ending) === undefined ? undefined : ending;
}

/** A text in an element: drawn again with more to it, only the blocks that changed are made anew. */
export class Drawing {
  private blocks: { raw: string; nodes: ChildNode[] }[] = [];
  private links = "";

  constructor(private readonly place: HTMLElement) {}

  draw(text: string): void {
    const tokens = marked.lexer(unturned(text));
    const links = JSON.stringify(tokens.links);
    // a link may be named anywhere before it is told where it leads
    let same = links === this.links ? this.blocks.findIndex(({ raw }, at) => raw !== tokens[at]?.raw) : 0;
    if (same < 0) same = this.blocks.length;
    this.links = links;
    for (const { nodes } of this.blocks.splice(same)) for (const node of nodes) node.remove();
    for (const token of tokens.slice(same)) {
      const fragment = safe(token);
      this.blocks.push({ raw: token.raw, nodes: [...fragment.childNodes] });
      this.place.append(fragment);
    }
  }
}

/** Safe HTML, as nodes: what was checked is what is shown. */
function safe(token: Token): DocumentFragment {
  const fragment = DOMPurify.sanitize(marked.parser([token]), {
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
