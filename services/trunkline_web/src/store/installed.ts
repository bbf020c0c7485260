/** The app as an installed program: its service worker, a newer build that waits, and the browser's offer to install it. */

import { createSignal } from "solid-js";
import { go } from "../route";
import { onConnected } from "./world";

interface InstallEvent extends Event {
  prompt(): Promise<unknown>;
}

const [newer, setNewer] = createSignal<ServiceWorker>();
const [offer, setOffer] = createSignal<InstallEvent>();

/** Whether a newer build is here, which comes into effect with `change`. */
export const isNewer = (): boolean => newer() !== undefined;
/** Whether the browser offers to install the app. */
export const installable = (): boolean => offer() !== undefined;

export async function install(): Promise<void> {
  await offer()?.prompt();
  setOffer(undefined);
}

/** Has the newer build take over. Every page of the app is loaded anew with it. */
export function change(): void {
  newer()?.postMessage("take over");
}

export function beInstalled(): void {
  addEventListener("beforeinstallprompt", (event) => {
    event.preventDefault();
    setOffer(event as InstallEvent);
  });
  addEventListener("appinstalled", () => setOffer(undefined));
  // only a build has one; and only where browsers trust the address
  if (import.meta.env.PROD && "serviceWorker" in navigator) void register(navigator.serviceWorker);
}

async function register(workers: ServiceWorkerContainer): Promise<void> {
  // the first worker of a browser takes over a page that is of its own build: nothing changes
  let controlled = workers.controller !== null;
  let silent = false;
  workers.addEventListener("controllerchange", () => {
    if (controlled && !silent) location.reload();
    controlled = true;
    silent = false;
  });
  workers.addEventListener("message", ({ data }) => {
    if (typeof data?.go === "string") go(data.go);
  });
  let registration: ServiceWorkerRegistration;
  try {
    registration = await workers.register("/sw.js");
  } catch {
    return; // a browser that forbids it has the app from the network alone
  }
  const look = async () => {
    const waiting = registration.waiting;
    if (waiting === null || workers.controller === null) return;
    if (await isOurs(waiting)) {
      // the page came from the network, and is as new already
      silent = true;
      waiting.postMessage("take over");
    } else setNewer(() => waiting);
  };
  registration.addEventListener("updatefound", () => {
    registration.installing?.addEventListener("statechange", () => void look());
  });
  const update = () => void registration.update().catch(() => undefined);
  onConnected(update);
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && update());
  await look();
}

/** Whether a worker's build is the one that this page runs. */
function isOurs(worker: ServiceWorker): Promise<boolean> {
  const { port1, port2 } = new MessageChannel();
  const script = new URL(import.meta.url).pathname;
  return new Promise((resolve) => {
    port1.onmessage = ({ data }) => resolve(data === true);
    worker.postMessage({ script }, [port2]);
  });
}
