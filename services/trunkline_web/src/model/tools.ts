/** What a call of a tool is about, for a card's head and for an ask. Pure. */

import type { AskOption, Block, Requested } from "../client/protocol";
import { textOf } from "../client/protocol";

export interface Change {
  path: string;
  old: string;
  new: string;
  unified?: string;
}

type Fields = Record<string, unknown>;

const fields = (input: unknown): Fields =>
  typeof input === "object" && input !== null && !Array.isArray(input) ? (input as Fields) : {};
const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

/** The command line that a call runs, if it runs one. */
export function commandOf(input: unknown): string | undefined {
  const { command, cmd } = fields(input);
  const found = command ?? cmd;
  return Array.isArray(found) && found.every((word) => typeof word === "string") ? found.join(" ") : text(found);
}

/** The file that a call is about. */
export function pathOf(input: unknown): string | undefined {
  const { file_path, path, filePath, notebook_path } = fields(input);
  return text(file_path) ?? text(filePath) ?? text(path) ?? text(notebook_path);
}

/** One line that says what a call does. */
export function headOf(name: string, title: string | null | undefined, input: unknown): string {
  const { pattern, query, url, description, prompt } = fields(input);
  const about = commandOf(input) ?? pathOf(input) ?? text(pattern) ?? text(query) ?? text(url) ?? text(description);
  const line = title && title !== name ? title : (about ?? text(prompt) ?? "");
  return (line.split("\n", 1)[0] ?? "").slice(0, 200);
}

/** The changes of files that an input proposes: an edit's old and new text, or a whole new content. */
export function changesOf(input: unknown): Change[] {
  const given = fields(input);
  const path = pathOf(input);
  if (path === undefined) return [];
  const edits = Array.isArray(given.edits) ? given.edits.map(fields) : [given];
  const found: Change[] = [];
  for (const edit of edits) {
    const before = text(edit.old_string) ?? text(edit.oldString) ?? text(edit.old_text) ?? text(edit.oldText);
    const after =
      text(edit.new_string) ?? text(edit.newString) ?? text(edit.new_text) ?? text(edit.newText) ?? text(edit.content);
    if (after !== undefined) found.push({ path, old: before ?? "", new: after });
  }
  return found;
}

/** The changes in a result's content. */
export function changesIn(content: Block[]): Change[] {
  return content
    .filter((block) => block.type === "diff")
    .map((block) => ({
      path: block.path ?? "",
      old: textOf(block.old),
      new: textOf(block.new),
      unified: block.unified === undefined || block.unified === null ? undefined : textOf(block.unified),
    }));
}

/** The rules that an option of an ask writes: of several to allow always each has one suggestion, a single one has them all. */
export function rulesBy(option: AskOption, { options = [], suggestions }: Requested): string[] {
  if (option.kind !== "allow_always") return [];
  const always = options.filter((one) => one.kind === "allow_always");
  if (!Array.isArray(suggestions) || suggestions.length !== always.length) return rulesOf(suggestions);
  return rulesOf([suggestions[always.findIndex((one) => one.id === option.id)]]);
}

/** The rules that "allow always" proposes, in words, as far as its forms are known; otherwise as JSON. */
export function rulesOf(suggestions: unknown): string[] {
  if (suggestions === null || suggestions === undefined) return [];
  const every: unknown[] = Array.isArray(suggestions) ? suggestions : [suggestions];
  return every.flatMap((one) => {
    if (typeof one === "string") return [one];
    const { type, rules, mode, directories, destination } = fields(one);
    const where = text(destination) ? ` (${text(destination)})` : "";
    if (type === "addRules" && Array.isArray(rules)) {
      return rules.map(fields).map((rule) => {
        const content = text(rule.ruleContent);
        return `${text(rule.toolName) ?? "?"}${content === undefined ? "" : `(${content})`}${where}`;
      });
    }
    if (type === "setMode") return [`mode ${text(mode) ?? "?"}${where}`];
    if (type === "addDirectories" && Array.isArray(directories)) return [`directories ${directories.join(", ")}${where}`];
    return [JSON.stringify(one)];
  });
}
