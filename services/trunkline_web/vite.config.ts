import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";
import solid from "vite-plugin-solid";

const CLIENT = join(import.meta.dirname, "../../libs/trunkline_client_ts/src/index.ts");
const OUT = "../trunkline_gateway/static/app";

/** Writes `name.gz` beside what compresses: the gateway serves it to those who take it. */
function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    closeBundle() {
      for (const entry of readdirSync(OUT, { recursive: true, withFileTypes: true })) {
        const path = join(entry.parentPath, entry.name);
        if (entry.isFile() && /\.(js|css|svg)$/.test(entry.name)) {
          writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
        }
      }
    },
  };
}

export default defineConfig({
  plugins: [solid(), compressed()],
  resolve: { alias: { "trunkline-client": CLIENT } },
  build: {
    outDir: OUT,
    emptyOutDir: true,
    target: "es2022",
    // The policy of the page forbids what is inline, so nothing is.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: { checks: { pluginTimings: false } },
  },
  server: { proxy: { "/ws": { target: "http://127.0.0.1:30086", ws: true }, "/sign-in": "http://127.0.0.1:30086" } },
});
