/**
 * The service worker: without a network the app opens as the build that was here last, whole; with one it is never older than
 * what the gateway serves. The build puts FILES before this: every file of that build, whose names change with their content.
 *
 * Pages come from the network, and from here only where that fails; files with a hash in their name from here if they are of
 * this build. A new build waits until its page says so: then all pages change to it at once.
 *
 * A browser that is paired with a host by a relay keeps the digests of the apps that the host vouches for (src/seal/record.ts).
 * Then everything comes from here, nothing from the relay but a build of one of these digests, each file of which has its hash.
 */

/* global FILES, BUILD */

const CACHE = `trunkline-${BUILD}`;
const PAGE = "/";
/** Paths that are the app's; all else at this address is none of ours. */
const PAGES = /^\/(|pair|sign-in|asks|new|overview|session\/.*|terminal\/.*|workspace\/.*|team\/.*)$/;
const NETWORK_MS = 8_000;

self.addEventListener("install", (event) => {
  event.waitUntil(install());
});

async function install() {
  const vouched = await apps();
  const cache = await caches.open(CACHE);
  const fresh = (path) => new Request(path, { cache: "reload" });
  if (vouched.length === 0) return cache.addAll([PAGE, ...FILES].map(fresh));
  const manifest = await (await fetch(fresh("/app.json"))).json();
  if (!vouched.includes(await digestOf(manifest.files))) throw new Error("the host does not vouch for this build");
  for (const path of [PAGE, ...FILES]) {
    const answer = await fetch(fresh(path));
    const content = await answer.clone().arrayBuffer();
    const wanted = manifest.files[path === PAGE ? "index.html" : path.slice(1)];
    if (!answer.ok || hex(await crypto.subtle.digest("SHA-256", content)) !== wanted) throw new Error(`${path} is not what the host vouches for`);
    await cache.put(path, answer);
  }
}

/** The digests that a host vouches for, in base64; none where no host is paired. */
function apps() {
  return new Promise((resolve) => {
    const opening = indexedDB.open("trunkline", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("keys");
    opening.onerror = () => resolve([]);
    opening.onsuccess = () => {
      const got = opening.result.transaction("keys").objectStore("keys").get("apps");
      got.onsuccess = () => resolve(got.result ?? []);
      got.onerror = () => resolve([]);
    };
  });
}

/** As src/seal/app.ts has it. */
async function digestOf(files) {
  const lines = Object.keys(files).sort().map((path) => `${path} ${files[path]}\n`);
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(lines.join("")));
  return btoa(String.fromCharCode(...new Uint8Array(digest)));
}

const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");

self.addEventListener("activate", (event) => {
  event.waitUntil(
    caches
      .keys()
      .then((names) => Promise.all(names.filter((name) => name.startsWith("trunkline-") && name !== CACHE).map((name) => caches.delete(name))))
      .then(() => self.clients.claim()),
  );
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== self.location.origin) return;
  if (request.mode === "navigate" && PAGES.test(url.pathname)) event.respondWith(page(request));
  else if (FILES.includes(url.pathname)) event.respondWith(file(request));
  else if (url.pathname !== "/app.json") event.respondWith(other(request));
});

async function page(request) {
  const kept = await (await caches.open(CACHE)).match(PAGE);
  if (kept !== undefined && (await apps()).length > 0) return kept;
  try {
    return await fetch(request, { signal: AbortSignal.timeout(NETWORK_MS) });
  } catch (error) {
    if (kept === undefined) throw error;
    return kept;
  }
}

/** What is no part of the app: none of it where a host vouches for what is. */
async function other(request) {
  return (await apps()).length > 0 ? Response.error() : fetch(request);
}

async function file(request) {
  return (await (await caches.open(CACHE)).match(request)) ?? fetch(request);
}

self.addEventListener("message", (event) => {
  if (event.data === "take over") void self.skipWaiting();
  // whether a page is of this build
  else if (event.data?.script !== undefined) event.ports[0]?.postMessage(FILES.includes(event.data.script));
});

/** An ask waits (services/trunkline_extensions/push): shown as src/view/announce.ts does, unless somebody looks at the app. */
self.addEventListener("push", (event) => {
  if (event.data !== null) event.waitUntil(notify(event.data.json()));
});

async function notify({ title, body, path, ask }) {
  const pages = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  if (pages.some((one) => one.visibilityState === "visible")) return;
  await self.registration.showNotification(title, { body, tag: ask, icon: "/icon-192.png", data: { path } });
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const to = event.notification.data?.path ?? PAGE;
  event.waitUntil(
    self.clients.matchAll({ type: "window", includeUncontrolled: true }).then(async (pages) => {
      const open = pages.find((one) => one.visibilityState === "visible") ?? pages[0];
      if (open === undefined) return self.clients.openWindow(to);
      open.postMessage({ go: to });
      return open.focus();
    }),
  );
});
