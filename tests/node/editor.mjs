// An editor made of the official TypeScript SDK. Arguments: a JSON object {cwd, prompts, choose, form} and the agent's command.
// Prints one JSON object: the answers and everything that the agent has told and asked.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const { cwd, prompts, choose, form } = JSON.parse(process.argv[2]);
const [program, ...args] = process.argv.slice(3);
const agent = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const told = { updates: [], asked: [], forms: [], stops: [] };

const editor = acp
  .client({ name: "editor" })
  .onNotification(acp.methods.client.session.update, ({ params }) => void told.updates.push(params.update))
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    told.asked.push(params);
    const option = params.options.find((one) => one.kind === choose);
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  })
  .onRequest(acp.methods.client.elicitation.create, ({ params }) => {
    told.forms.push(params);
    return { action: "accept", content: form };
  });

await editor.connectWith(stream, async (peer) => {
  told.initialized = await peer.request(acp.methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: { elicitation: { form: {} }, session: { notices: {} } },
  });
  const { sessionId } = await peer.request(acp.methods.agent.session.new, { cwd, mcpServers: [] });
  for (const text of prompts) {
    const answer = await peer.request(acp.methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
    told.stops.push(answer.stopReason);
  }
  told.listed = (await peer.request(acp.methods.agent.session.list, { cwd })).sessions.map((one) => one.sessionId);
  told.session = sessionId;
});
agent.stdin.end();
console.log(JSON.stringify(told));
