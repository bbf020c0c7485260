/** Parses texts that may take long, where nobody waits for the thread. */

import { parse } from "./parsing";

self.onmessage = ({ data }: MessageEvent<string>) => self.postMessage(parse(data));
