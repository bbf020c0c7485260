/** Ids that a client mints: a command repeated with its id has one effect. */

function hex(bytes: number): string {
  return [...crypto.getRandomValues(new Uint8Array(bytes))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const newCommand = (): string => `cmd_${hex(16)}`;
export const newSession = (): string => `ses_${hex(16)}`;
export const newViewer = (): string => hex(8);
