import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
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

/** Writes `app.json`, by which a host vouches for the app (trunkline_seal/app_digest.py): the SHA-256 of each file of the build. */
function manifest(): Plugin {
  return {
    name: "manifest",
    apply: "build",
    closeBundle: {
      order: "pre",
      handler() {
        const files: Record<string, string> = {};
        for (const entry of readdirSync(OUT, { recursive: true, withFileTypes: true })) {
          const path = join(entry.parentPath, entry.name);
          if (!entry.isFile() || entry.name.endsWith(".gz")) continue;
          files[relative(OUT, path).replaceAll("\\", "/")] = createHash("sha256").update(readFileSync(path)).digest("hex");
        }
        writeFileSync(join(OUT, "app.json"), `${JSON.stringify({ files })}\n`);
      },
    },
  };
}

/** Makes `sw.js` of src/sw.js and the names of all files of the build. */
function serviceWorker(): Plugin {
  return {
    name: "service-worker",
    apply: "build",
    generateBundle(_, bundle) {
      const beside = readdirSync(join(import.meta.dirname, "public"));
      const files = [...Object.keys(bundle).filter((name) => name.startsWith("assets/")), ...beside].sort().map((name) => `/${name}`);
      const build = createHash("sha256").update(files.join());
      for (const name of ["index.html", ...beside.map((one) => `public/${one}`)]) build.update(readFileSync(join(import.meta.dirname, name)));
      const head = `const BUILD = ${JSON.stringify(build.digest("hex").slice(0, 16))};\nconst FILES = ${JSON.stringify(files)};\n`;
      const source = head + readFileSync(join(import.meta.dirname, "src/sw.js"), "utf8");
      this.emitFile({ type: "asset", fileName: "sw.js", source });
    },
  };
}

export default defineConfig({
  plugins: [solid(), serviceWorker(), manifest(), compressed()],
  worker: { format: "es" },
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
