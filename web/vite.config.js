import { defineConfig } from "vite";

export default defineConfig({
  build: {
    outDir: "../crates/paceline-http/pages/dist",
    emptyOutDir: true,
    target: "es2022",
    rollupOptions: { input: ["index.html", "operator.html", "world.html"] },
    // The page allows itself nothing inline.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
