import { defineConfig } from "vite";

// The client for pages: one file of a fixed name, without dependencies.
export default defineConfig({
  publicDir: false,
  build: {
    outDir: "../crates/paceline-http/pages/dist",
    emptyOutDir: false,
    target: "es2022",
    lib: { entry: "client/index.ts", formats: ["es"], fileName: () => "client.js" },
  },
});
