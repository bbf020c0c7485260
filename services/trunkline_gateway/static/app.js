// The minimal page: sessions, one session's messages, prompts and decisions. Text from agents is only ever shown as text.
"use strict";

const $ = (id) => document.getElementById(id);
const calls = new Map();
let socket, number = 0, session, subscription, cursor, blocks = new Map(), retry = 500, signedIn = false, device;

function call(method, params = {}) {
  return new Promise((resolve, reject) => {
    const id = String(++number);
    calls.set(id, { resolve, reject });
    socket.send(JSON.stringify({ type: "req", id, method, params }));
  });
}

function attempt(work) {
  $("error").textContent = "";
  work().catch((error) => { $("error").textContent = `${error.code}: ${error.message}`; });
}

function connect(token) {
  socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`);
  socket.onmessage = ({ data }) => take(JSON.parse(data));
  socket.onopen = async () => {
    try {
      const hello = await call("hello", { protocol: 1, client: "page", token });
      if (token) sessionStorage.setItem("token", token);
      signedIn = true;
      device = hello.device;
      retry = 500;
      $("state").textContent = `${hello.actor} (${hello.role})`;
      $("sign-in").hidden = true;
      document.querySelector("main").hidden = false;
      await call("subscribe", { from: "now", deltas: false, patterns: ["session.created", "turn.*", "session.closed"] });
      await list();
      if (session) await follow(session);
    } catch (error) {
      sessionStorage.removeItem("token");
      signedIn = false;
      $("state").textContent = error.message;
      $("sign-in").hidden = false;
    }
  };
  socket.onclose = () => {
    for (const { reject } of calls.values()) reject({ code: "closed", message: "the connection was lost" });
    calls.clear();
    subscription = undefined;
    if (!signedIn) return;
    $("state").textContent = "connecting again …";
    setTimeout(() => connect(token), retry);
    retry = Math.min(retry * 2, 10000);
  };
}

function take(frame) {
  if (frame.type === "res") {
    const { resolve, reject } = calls.get(frame.id) ?? {};
    calls.delete(frame.id);
    if (frame.ok) resolve?.(frame.payload); else reject?.(frame.error);
  } else if (frame.type === "event" && frame.subscription === subscription) {
    cursor = frame.cursor ?? cursor;
    if (frame.event === "gap") attempt(() => follow(session, true)); else show(frame.payload);
  } else if (frame.type === "event") {
    attempt(list);
  }
}

async function list() {
  const { sessions } = await call("session.list", { limit: 100 });
  $("sessions").replaceChildren(...sessions.map((state) => {
    const item = document.createElement("li"), button = document.createElement("button");
    button.textContent = `${state.title ?? state.session} · ${state.status}`;
    button.setAttribute("aria-current", String(state.session === session));
    button.onclick = () => attempt(() => follow(state.session, state.session !== session));
    item.append(button);
    return item;
  }));
}

async function follow(wanted, fresh) {
  const again = !fresh && wanted === session && cursor;
  if (subscription) await call("unsubscribe", { subscription });
  subscription = undefined;
  const opened = await call("subscribe", again ? { session: wanted, cursor } : { session: wanted });
  session = wanted;
  ({ subscription, cursor } = opened);
  $("prompt").hidden = false;
  if (opened.snapshot) {
    const { state, asks, blocks: open } = opened.snapshot;
    const page = await call("session.history", { session, limit: 100 });
    $("title").textContent = state.title ?? state.session;
    $("log").replaceChildren();
    $("asks").replaceChildren();
    blocks = new Map();
    for (const { event } of page.events) show(event);
    for (const ask of asks) if (ask.status === "open") showAsk(ask.requested, ask.kind);
    for (const block of open) write(block.item, block.block, 0, block.text, block.kind);
  }
  await list();
}

function line(text, kind) {
  const log = $("log"), bottom = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  const p = document.createElement("p");
  p.className = kind;
  p.textContent = text;
  log.append(p);
  while (log.childElementCount > 1000) log.firstElementChild.remove();
  if (bottom) log.scrollTop = log.scrollHeight;
  return p;
}

function write(item, block, at, text, kind) {
  if (kind !== "text") return;
  const key = `${item}/${block}`;
  const known = blocks.get(key) ?? { p: line("", "open"), points: [] };
  known.points.splice(at, text.length, ...text);
  known.p.textContent = known.points.join("");
  blocks.set(key, known);
}

function show(event) {
  // The history page and the subscription may overlap.
  if (event.seq && $("log").querySelector(`[data-key="${event.session}/${event.seq}"]`)) return;
  const data = event.data;
  const texts = () => data.content.filter((b) => b.type === "text").map((b) => b.text.preview ?? b.text).join("");
  let p;
  switch (event.type) {
    case "message.user": p = line(texts(), "user"); break;
    case "message.assistant": {
      const key = `${event.item}/${data.block ?? 0}`;
      blocks.get(key)?.p.remove();
      blocks.delete(key);
      if (texts()) p = line(texts(), "assistant");
      break;
    }
    case "message.delta": write(event.item, data.block, data.at, data.text, data.kind ?? "text"); break;
    case "tool.started": p = line(`▸ ${data.title ?? data.name}`, "tool"); break;
    case "tool.completed": p = line(`◂ ${data.status}`, "tool"); break;
    case "turn.completed": p = line(`— ${data.outcome} —`, "note"); break;
    case "session.closed": p = line(`closed: ${data.reason}`, "note"); break;
    case "error": p = line(`${data.code}: ${data.message}`, "note"); break;
    case "permission.requested": showAsk(data, "permission"); break;
    case "question.asked": showAsk(data, "question"); break;
    case "plan.proposed": showAsk(data, "plan"); break;
    case "ask.decided": case "ask.expired": case "ask.withdrawn":
      document.getElementById(data.ask)?.remove();
      p = line(`${event.type}: ${data.behaviour ?? data.why}`, "note");
  }
  if (p && event.seq) p.dataset.key = `${event.session}/${event.seq}`;
}

function showAsk(asked, kind) {
  if (document.getElementById(asked.ask)) return;
  const box = document.createElement("div"), what = document.createElement("pre");
  box.id = asked.ask;
  box.className = "ask";
  const plan = asked.plan?.preview ?? asked.plan;
  what.textContent = plan ?? [asked.title ?? asked.name ?? asked.message ?? "", asked.input && JSON.stringify(asked.input, null, 1)]
    .filter(Boolean).join("\n");
  box.append(what);
  const answer = (params) => attempt(async () => {
    const given = { id: newId(), ask: asked.ask, session, ...params };
    await call("ask.answer", { ...given, ...await signature(given) });
  });
  const button = (label, act) => {
    const made = document.createElement("button");
    made.textContent = label;
    made.onclick = act;
    box.append(made);
  };
  if (kind === "question" && asked.questions?.length) {
    const inputs = asked.questions.map((question) => {
      const label = document.createElement("label"), input = document.createElement("input");
      const choices = (question.options ?? []).map((option) => option.label).join(" / ");
      label.textContent = choices ? `${question.text} (${choices})` : question.text;
      label.append(input);
      box.append(label);
      return [question.id, input];
    });
    button("Answer", () => answer({
      behaviour: "answered", answers: Object.fromEntries(inputs.map(([id, input]) => [id, input.value])),
    }));
    button("Decline", () => answer({ behaviour: "deny" }));
  } else {
    button("Allow", () => answer({ behaviour: "allow" }));
    button("Deny", () => answer({ behaviour: "deny" }));
  }
  $("asks").append(box);
}

$("sign-in").onsubmit = (event) => {
  event.preventDefault();
  connect($("token").value.trim());
  $("token").value = "";
};
$("prompt").onsubmit = (event) => {
  event.preventDefault();
  attempt(async () => {
    await call("session.prompt", { session, text: $("text").value });
    $("text").value = "";
  });
};
$("interrupt").onclick = () => attempt(() => call("session.interrupt", { session }));

// A browser that signed in by a link is a device: its key never leaves it, and signs what is decided here.
function keys(mode, act) {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open("trunkline", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("keys");
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const done = act(opening.result.transaction("keys", mode).objectStore("keys"));
      done.onsuccess = () => resolve(done.result);
      done.onerror = () => reject(done.error);
    };
  });
}

async function newKey() {
  if (!globalThis.crypto?.subtle) return {};  // only pages of https and of this machine have it
  const raw = crypto.getRandomValues(new Uint8Array(32));
  const key = await crypto.subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return { key, registered: btoa(String.fromCharCode(...raw)) };
}

async function signature(answer) {
  const known = globalThis.crypto?.subtle && await keys("readonly", (store) => store.get("device"));
  if (!known || known.device !== device) return {};
  const { nonce, time } = await call("ask.nonce");
  return { signature: { device, time, nonce, mac: await answerMac(known.key, answer, time, nonce) } };
}

// A sign-in link carries its code behind the #, which never leaves the browser by itself.
async function start() {
  const code = location.pathname === "/sign-in" && new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) {
    history.replaceState(null, "", "/");
    const made = await newKey();
    const answer = await fetch("/sign-in", {
      method: "POST", headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ code, device: navigator.platform || "browser", key: made.registered }),
    });
    if (!answer.ok) {
      $("error").textContent = (await answer.json()).detail;
      document.querySelector("main").hidden = false;
      return;
    }
    const signed = await answer.json();
    if (made.key) await keys("readwrite", (store) => store.put({ device: signed.device, key: made.key }, "device"));
  }
  connect(sessionStorage.getItem("token") ?? undefined);
}
start();
