// Loaded into agents that run on Node or Bun, which write to a pipe behind the program's back: one that leaves by `process.exit`
// loses what its reader has not taken by then. With this a write to standard output is over when the pipe has all of it.
const { writeSync } = require("node:fs");

const clock = new Int32Array(new SharedArrayBuffer(4));
const PAUSE_MS = 2;

process.stdout.write = (chunk, encoding, done) => {
  const then = typeof encoding === "function" ? encoding : done;
  let left = typeof chunk === "string" ? Buffer.from(chunk, typeof encoding === "string" ? encoding : "utf8") : chunk;
  while (left.length > 0) {
    try {
      left = left.subarray(writeSync(1, left));
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
      Atomics.wait(clock, 0, 0, PAUSE_MS);
    }
  }
  if (then) process.nextTick(then);
  return true;
};
