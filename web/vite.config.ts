import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

/** Where `npm run dev` finds the API: the console that `ragstack up` serves. */
const console = process.env.CONSOLE ?? "http://localhost:4580";

export default defineConfig({
  plugins: [react()],
  base: "./",
  build: {
    outDir: "../ragstack_local/console/static",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: {
    proxy: Object.fromEntries(
      ["/api", "/health", "/openapi.json", "/console.json"].map((path) => [path, { target: console }]),
    ),
  },
  test: { environment: "node" },
});
