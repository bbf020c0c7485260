/** The time, twice a minute, for all that says how long ago something was. */

import { createSignal } from "solid-js";

const [now, setNow] = createSignal(Date.now());
setInterval(() => setNow(Date.now()), 30_000);

export { now };
