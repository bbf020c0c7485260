/** What a call may end with, beside its answer. */

import type { ErrorCode, ErrorInfo } from "./generated.js";

/** The gateway's no. `code` is stable (a later gateway may have more of them); the message is for people. */
export class TrunklineError extends Error {
  override readonly name = "TrunklineError";

  constructor(
    readonly code: ErrorCode | (string & {}),
    message: string,
    readonly details: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
  }

  /** Seconds to wait before the next try, where the gateway named them. */
  get retryAfter(): number | undefined {
    const seconds = this.details.retry_after;
    return typeof seconds === "number" ? seconds : undefined;
  }
}

/** The connection ended before the answer: the call may have taken effect. */
export class ConnectionLostError extends Error {
  override readonly name = "ConnectionLostError";
}

const PASSING: ReadonlySet<string> = new Set(["log_unavailable", "timeout", "rate_limited"]);

/** Whether it is the no of a gateway that is there again and can't read the log yet, or that saw this client come too often. */
export const passes = (error: unknown): boolean => error instanceof TrunklineError && PASSING.has(error.code);

export function errorOf(error: Partial<ErrorInfo> | undefined): TrunklineError {
  const details = (error?.details ?? {}) as Record<string, unknown>;
  return new TrunklineError(error?.code ?? "internal", error?.message ?? "the gateway gave no reason", details);
}
