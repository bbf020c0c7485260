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
await nc.flush();
console.log("ready");
await nc.closed();
