/** Numbers and times in few characters. Pure; `now` is in milliseconds since 1970. */

export function ago(time: string | null | undefined, now: number): string {
  if (!time) return "";
  const seconds = Math.max(0, (now - Date.parse(time)) / 1000);
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

export function count(value: number): string {
  if (value < 1000) return String(value);
  if (value < 999_950) return `${(value / 1000).toFixed(value < 9_950 ? 1 : 0)}k`;
  return `${(value / 1_000_000).toFixed(1)}M`;
}

export function bytes(value: number): string {
  if (value < 1024) return `${value} B`;
  if (value < 1024 * 1024) return `${Math.round(value / 1024)} KB`;
  return `${(value / 1024 / 1024).toFixed(1)} MB`;
}

export function money(usd: number): string {
  return usd > 0 && usd < 0.01 ? "<$0.01" : `$${usd.toFixed(2)}`;
}

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** A time of the day, and of another day its date, too. */
export function moment(time: string, now: number, locale?: string): string {
  const [then, today] = [new Date(time), new Date(now)];
  const year = then.getFullYear() === today.getFullYear() ? undefined : "numeric";
  const day = { year, month: "short", day: "numeric" } as const;
  const other = then.toDateString() !== today.toDateString();
  return then.toLocaleString(locale, { ...(other && day), hour: "numeric", minute: "2-digit" });
}

/** The last parts of a path, as long as they fit. */
export function shortPath(path: string | null | undefined, length = 36): string {
  if (!path || path.length <= length) return path ?? "";
  const parts = path.split("/");
  let shown = parts.pop() ?? "";
  while (parts.length > 0 && shown.length + (parts.at(-1) ?? "").length + 3 <= length) shown = `${parts.pop()}/${shown}`;
  return `…/${shown}`;
}

/** Control characters and those that turn the direction of writing around, made visible: a command shall look as it is. */
export function visible(text: string): string {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/gu,
    (sign) => `\\u${(sign.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`,
  );
}

/** What turns the direction of writing around made visible, in prose, where all else may be meant: joined emoji, marks of a script. */
export function unturned(text: string): string {
  return text.replace(/[\u202a-\u202e\u2066-\u2069]/g, visible);
}

/** A terminal's output without colours and cursor movements; of a line that was written over what was written last. */
export function plain(text: string): string {
  const bare = text.replace(/\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[@-Z\\-_]/g, "");
  return unturned(bare.includes("\r") ? bare.split("\n").map(last).join("\n") : bare);
}

function last(line: string): string {
  const end = line.endsWith("\r") ? line.length - 1 : line.length;
  return end === 0 ? "" : line.slice(line.lastIndexOf("\r", end - 1) + 1, end);
}
