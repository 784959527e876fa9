// A module of the page as a module of node, for tests of what needs no browser.
import { build } from 'esbuild'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

export async function load(name) {
  const folder = await mkdtemp(join(tmpdir(), 'hadal-web-'))
  const outfile = join(folder, 'module.mjs')
  const entry = fileURLToPath(new URL(`../src/${name}`, import.meta.url))
  await build({ entryPoints: [entry], outfile, bundle: true, format: 'esm', logLevel: 'error' })
  return import(pathToFileURL(outfile).href)
}
