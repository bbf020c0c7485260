/** The pairing link that was opened, if it was one; it is taken out of the address and the history before anything else is done. */
export function taken(): string | undefined {
  if (location.pathname !== "/pair") return undefined;
  const link = location.href;
  history.replaceState(null, "", "/pair");
  // another link in the same tab is the same page to a browser
  addEventListener("hashchange", () => location.hash && location.reload());
  return link;
}
