/**
 * The page's policy forbids style elements, and xterm makes some. What it writes into them goes into sheets of the document
 * instead, which scripts of ours may make.
 */

/** Does `act`, and returns what takes the sheets away that its style elements became. */
export function adopting(act: () => void): () => void {
  const sheets: CSSStyleSheet[] = [];
  const create = document.createElement.bind(document);
  const replaced = ((name: string, options?: ElementCreationOptions): HTMLElement => {
    // even an empty style element is refused
    if (name !== "style") return create(name, options);
    const made = create("template");
    sheets.push(adopt(made));
    return made;
  }) as typeof document.createElement;
  document.createElement = replaced;
  try {
    act();
  } finally {
    Reflect.deleteProperty(document, "createElement");
  }
  return () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => !sheets.includes(one));
  };
}

function adopt(element: HTMLElement): CSSStyleSheet {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets.push(sheet);
  let text = "";
  Object.defineProperty(element, "textContent", {
    get: () => text,
    set(value: string) {
      text = value;
      sheet.replaceSync(value);
    },
  });
  return sheet;
}
