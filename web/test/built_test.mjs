// The committed files are what `npm run build` gives.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const committed = join(root, '../src/server/web/static')

test('the committed files are those that the sources give', () => {
  const fresh = mkdtempSync(join(tmpdir(), 'hadal-built-'))
  execFileSync(join(root, 'node_modules/.bin/vite'), ['build', '--logLevel', 'error'], {
    cwd: root,
    env: { ...process.env, HADAL_WEB_OUT: fresh },
  })
  assert.deepEqual(readdirSync(fresh).sort(), readdirSync(committed).sort())
  for (const name of readdirSync(fresh))
    assert(readFileSync(join(fresh, name)).equals(readFileSync(join(committed, name))), `${name}: run npm run build`)
})

test('nothing in them asks another server', () => {
  for (const name of readdirSync(committed)) {
    const text = readFileSync(join(committed, name), 'utf8')
    for (const [address] of text.matchAll(/https?:\/\/[\w.-]+/g))
      assert(/www\.w3\.org|github\.com|localhost|preactjs\.com|mozilla\.org/.test(address), `${name}: ${address}`)
    assert(!/<script>|<style>| style="/.test(name.endsWith('.html') ? text : ''), 'inline code breaks the policy')
  }
})
