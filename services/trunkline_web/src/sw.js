/**
 * The service worker: without a network the app opens as the build that was here last, whole; with one it is never older than
 * what the gateway serves. The build puts FILES before this: every file of that build, whose names change with their content.
 *
 * Pages come from the network, and from here only where that fails; files with a hash in their name from here if they are of
 * this build. A new build waits until its page says so: then all pages change to it at once.
 */

/* global FILES, BUILD */

const CACHE = `trunkline-${BUILD}`;
const PAGE = "/";
/** Paths that are the app's; all else at this address is none of ours. */
const PAGES = /^\/(|sign-in|asks|new|overview|session\/.*|terminal\/.*|workspace\/.*|team\/.*)$/;
const NETWORK_MS = 8_000;

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll([PAGE, ...FILES].map((path) => new Request(path, { cache: "reload" })))));
});

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
});

async function page(request) {
  try {
    return await fetch(request, { signal: AbortSignal.timeout(NETWORK_MS) });
  } catch (error) {
    const kept = await (await caches.open(CACHE)).match(PAGE);
    if (kept === undefined) throw error;
    return kept;
  }
}

async function file(request) {
  return (await (await caches.open(CACHE)).match(request)) ?? fetch(request);
}

self.addEventListener("message", (event) => {
  if (event.data === "take over") void self.skipWaiting();
  // whether a page is of this build
  else if (event.data?.script !== undefined) event.ports[0]?.postMessage(FILES.includes(event.data.script));
});

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
