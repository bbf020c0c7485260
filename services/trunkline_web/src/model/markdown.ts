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
import { Marked } from "marked";

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

/** Safe HTML, as nodes: what was checked is what is shown. */
export function render(text: string): DocumentFragment {
  const fragment = DOMPurify.sanitize(marked.parse(text) as string, {
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
