import { expect, test } from "vitest";
import { parse, type Parsed } from "../src/model/parsing";

const TEXT = `# Title

Words of a paragraph
that becomes a heading
===

- one
- two

  more of two

| a | b |
|---|---|
| 1 | 2 |

\`\`\`js
const x = 1;

x;
\`\`\`

See [there][far] and *here*.

> quoted

[far]: https://example.org

The end.
`;

test("a text that grows is parsed as it is when it is whole", () => {
  let parsed: Parsed | undefined;
  for (let end = 1; end <= TEXT.length; end++) {
    parsed = parse(TEXT.slice(0, end), parsed);
    expect(parsed.blocks.map(({ html }) => html).join("")).toBe(parse(TEXT.slice(0, end)).blocks.map(({ html }) => html).join(""));
  }
});
