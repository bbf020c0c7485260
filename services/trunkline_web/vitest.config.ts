import { join } from "node:path";
import { defineConfig } from "vitest/config";

const CLIENT = join(import.meta.dirname, "../../libs/trunkline_client_ts/src/index.ts");

// Stores are those of the browser: on a server they watch nothing.
export default defineConfig({
  resolve: { alias: { "trunkline-client": CLIENT }, conditions: ["browser", "development"] },
  test: { environment: "node", hookTimeout: 60_000, include: ["tests/**/*.test.ts"], server: { deps: { inline: [/solid-js/] } } },
});
