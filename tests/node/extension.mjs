// An extension in JavaScript: NATS_URL, NATS_NKEY_SEED_FILE and NATS_INBOX_PREFIX are what `trunkline extension add` prints.
import { readFileSync } from "node:fs";
import { connect, nkeyAuthenticator } from "@nats-io/transport-node";
import { Svcm } from "@nats-io/services";

const seed = new TextEncoder().encode(readFileSync(process.env.NATS_NKEY_SEED_FILE, "utf8").trim());
const nc = await connect({
  servers: process.env.NATS_URL,
  authenticator: nkeyAuthenticator(seed),
  inboxPrefix: process.env.NATS_INBOX_PREFIX,
});
const service = await new Svcm(nc).add({ name: process.env.SERVICE_NAME, version: "0.1.0", description: "Shouts." });
service.addEndpoint("shout", {
  subject: "trunk.ext.shouter.shout",
  metadata: { role: "participant", description: "The text in capitals." },
  handler: async (error, message) => {
    if (error) return;
    const { text } = message.json();
    if (!text) {
      message.respondError(400, "there is nothing to shout");
      return;
    }
    const asked = await nc.request("trunk.api.shouter.viewer.session.list", "{}", { timeout: 5000 });
    message.respond(JSON.stringify({
      shouted: text.toUpperCase(),
      for: message.headers.get("Trunk-Actor"),
      sessions: asked.json().payload.total,
    }));
  },
});
// Its pages: a document that loads its script from beside it, and a picture that comes in parts.
const PAGES = {
  "": ["text/html; charset=utf-8", Buffer.from('<h1>Shouts</h1><p id="who"></p><script src="who.js"></script>')],
  "who.js": ["text/javascript", (who) => Buffer.from(`document.getElementById("who").textContent = ${JSON.stringify(who)};`)],
  "large.bin": ["application/octet-stream", Buffer.alloc(1_500_000, "trunk")],
};
const PART = 600_000;
service.addEndpoint("page", {
  subject: "trunk.ext.shouter.page",
  metadata: { pages: "true", role: "viewer", description: "Shouting" },
  handler: (error, message) => {
    if (error) return;
    const { path, offset } = message.json();
    const [type, content] = PAGES[path] ?? ["text/plain", Buffer.from(`there is no ${path}`)];
    const bytes = typeof content === "function" ? content(message.headers.get("Trunk-Actor")) : content;
    message.respond(JSON.stringify({
      status: path in PAGES ? 200 : 404,
      type,
      body: bytes.subarray(offset, offset + PART).toString("base64"),
      size: bytes.length,
    }));
  },
});
await nc.flush();
console.log("ready");
await nc.closed();
