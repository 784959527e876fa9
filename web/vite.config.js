// Builds the page into src/server/web/static, whose files are embedded in the binary. The built
// files are committed, so that a build of hadal needs no node; `npm run build` must give the same
// bytes (test/built_test.mjs).
import { defineConfig } from 'vite'

export default defineConfig({
  base: '/',
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  build: {
    outDir: process.env.HADAL_WEB_OUT ?? '../src/server/web/static',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: false,
    cssCodeSplit: false,
    target: 'es2022',
    rollupOptions: {
      output: { entryFileNames: 'app.js', chunkFileNames: '[name].js', assetFileNames: '[name][extname]' },
    },
  },
})
