/** Notifications while the app is closed: this browser's push subscription, which the gateway has for as long as its device is signed in. */

import { connection, hello, may, onConnected, onLeaving } from "./world";

/** What the gateway was told by this page, as device and endpoint. */
let told = "";

export function beNotified(): void {
  onConnected(() => void subscribe());
  onLeaving(unsubscribe);
}

/** Subscribes where the user lets the app notify, the browser can, and somebody sends. */
export async function subscribe(): Promise<void> {
  const device = hello()?.device;
  if (!device || !may("approver") || globalThis.Notification?.permission !== "granted") return;
  try {
    if ((await pushing()) === undefined) return;
    const manager = (await navigator.serviceWorker.ready).pushManager;
    const { key } = await connection.call("push.key");
    let subscription = await manager.getSubscription();
    if (subscription !== null && packed(subscription.options.applicationServerKey) !== key) {
      await subscription.unsubscribe(); // it was for another sender
      subscription = null;
    }
    subscription ??= await manager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
    const { endpoint, keys } = subscription.toJSON();
    const now = `${device} ${endpoint}`;
    if (!endpoint || !keys?.p256dh || !keys.auth || now === told) return;
    await connection.call("device.push", { subscription: { endpoint, keys: { p256dh: keys.p256dh, auth: keys.auth } } });
    told = now;
  } catch {
    // no sender, or a browser that has no push service: the page notifies while it is open
  }
}

/** Ends this browser's subscription, at the gateway and at the push service. */
export async function unsubscribe(): Promise<void> {
  told = "";
  const subscription = await (await pushing())?.getSubscription();
  if (!subscription) return;
  await connection.call("device.push", { subscription: null }).catch(() => undefined);
  await subscription.unsubscribe();
}

async function pushing(): Promise<PushManager | undefined> {
  return (await navigator.serviceWorker?.getRegistration())?.pushManager;
}

function packed(key: ArrayBuffer | null): string {
  const text = btoa(String.fromCharCode(...new Uint8Array(key ?? new ArrayBuffer(0))));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
