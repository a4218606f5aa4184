import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

/** Where `npm run dev` finds the API: the console that `ragstack up` serves. */
const console = process.env.CONSOLE ?? "http://localhost:4580";

/** What `main.ts` imports. */
const FIRST =
  /node_modules\/(preact|react)\/|src\/(api\/client|bearer|identity|kept|pages\/index|route|session|store|theme)\.ts$/;

/** Lets the page ask for the frame at once, not only when its first script does. */
const preloadFrame: Plugin = {
  name: "preload-frame",
  transformIndexHtml: {
    order: "post",
    handler(page, { bundle }) {
      const mount = Object.values(bundle ?? {}).find(({ name }) => name === "mount");
      if (mount?.type !== "chunk") return [];
      return [mount.fileName, ...mount.imports]
        .filter((name) => !page.includes(name))
        .map((name) => ({
          tag: "link",
          injectTo: "head" as const,
          attrs: { rel: "modulepreload", crossorigin: true, fetchpriority: "low", href: `./${name}` },
        }));
    },
  },
};

export default defineConfig({
  plugins: [react(), preloadFrame],
  base: "./",
  build: {
    outDir: "../ragstack_local/console/static",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    // Few files: each has to be asked for, and on a slow network that takes longer than its text.
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: "first", test: FIRST, priority: 2 },
            { name: "shared", minShareCount: 2, priority: 1 },
          ],
        },
      },
    },
  },
  server: {
    proxy: Object.fromEntries(
      ["/api", "/health", "/openapi.json", "/console.json"].map((path) => [path, { target: console }]),
    ),
  },
  test: { environment: "node" },
});
