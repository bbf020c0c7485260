/** Markdown into HTML, block by block. What comes of it is sanitised before it is shown: raw HTML is text, pictures are links. */

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
import { Marked } from "marked";
import { unturned } from "./format";

const LANGUAGES = { bash, c, cpp, css, diff, go, java, javascript, json, markdown, python, ruby, rust, sql, typescript, xml, yaml };
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);

const MOST_HIGHLIGHTED = 20_000;

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
function highlighted(text: string, language: string | undefined): string {
  const name = language?.trim().split(/\s/, 1)[0] ?? "";
  if (text.length > MOST_HIGHLIGHTED || hljs.getLanguage(name) === undefined) return escaped(text);
  return hljs.highlight(text, { language: name, ignoreIllegals: true }).value;
}

export interface Parsed {
  /** Where the links lead that are told apart from their places. */
  links: string;
  blocks: { raw: string; html: string }[];
}

const NO_LINKS = "{}";
/** Blocks at the end that what comes after them may still change. */
const UNSETTLED = 2;

/** The blocks of a text; those that `before` has are taken from there. Throws a RangeError for what is nested too deeply. */
export function parse(text: string, before?: Parsed): Parsed {
  const whole = unturned(text);
  const settled = before?.links === NO_LINKS ? before.blocks.slice(0, -UNSETTLED) : [];
  const head = settled.map(({ raw }) => raw).join("");
  const grown = head !== "" && whole.startsWith(head);
  const tokens = marked.lexer(grown ? whole.slice(head.length) : whole);
  const links = JSON.stringify(tokens.links);
  // a link may be named long before it is told where it leads
  if (grown && links !== NO_LINKS) return parse(text);
  const known = before?.links === links ? before.blocks.slice(grown ? settled.length : 0) : [];
  const blocks = tokens.map((token, at) => {
    const same = known[at];
    return same?.raw === token.raw ? same : { raw: token.raw, html: marked.parser([token]) };
  });
  return { links, blocks: grown ? [...settled, ...blocks] : blocks };
}
