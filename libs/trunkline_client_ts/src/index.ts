/** A client of Trunkline's gateway: every method with its parameters, and events once and in order over its restarts. */

export { Connection, type Address, type Frame, type Gap, type Hello, type Opened, type Socket } from "./connection.js";
export { ConnectionLostError, passes, TrunklineError } from "./errors.js";
export { newCommandId, newSessionId } from "./ids.js";
export { Link, type Method, type Notice, type Options, type UnknownEvent, type Wanted } from "./link.js";
export { MOST_CHARACTERS, MOST_WAITING, Queue } from "./queue.js";
export type * from "./generated.js";
