// The page in Debian's Chromium. HADAL_SCREENSHOTS names a folder for pictures of what it looks
// like. Skipped, and said so, where there is no Chromium.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync } from 'node:fs'
import test, { after, before } from 'node:test'
import { chromium } from 'playwright-core'
import { startFakeServer } from './fake_server.mjs'

const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium'
const options = existsSync(executablePath) ? {} : { skip: `skipped: no ${executablePath}` }
const pictures = process.env.HADAL_SCREENSHOTS

const rich = [
  'Here is **bold**, `code`, a [link](https://example.org/x) and a list:\n\n- one\n- two\n\n',
  '| a | b |\n|---|---|\n| 1 | 2 |\n\n',
  '```python\nprint("<b>hi</b>")\n```\n\n',
  'Inline $e^{i\\pi} + 1 = 0$, it costs $5 or $6, and\n\n$$\\int_0^1 x^2\\,dx = \\frac{1}{3}$$\n',
]
const attack =
  '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\n\n' +
  '[a](javascript:window.hacked=1) ![p](https://evil.example/pixel.png) <svg onload="window.hacked=1">\n\n' +
  '$\\href{javascript:window.hacked=1}{x}$ $\\includegraphics{https://evil.example/y.png}$\n\n' +
  '<div style="position:fixed;inset:0">over</div>'

function reply(body) {
  const last = body.messages.at(-1).content
  if (last === 'rich') return [...rich.map((content) => ({ content })), { finish_reason: 'stop' }]
  if (last === 'attack') return [{ content: attack }, { finish_reason: 'stop' }]
  if (last === 'think')
    return [
      { reasoning_content: 'Let me see. ' },
      { pause: 250 },
      { reasoning_content: 'Yes.' },
      { content: 'Done.' },
      { finish_reason: 'stop' },
    ]
  if (last === 'tool')
    return [
      { tool_calls: [{ index: 0, id: 'c', type: 'function', function: { name: 'weather', arguments: '{"city": ' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '"Oslo"}' } }] },
      { finish_reason: 'tool_calls' },
    ]
  if (last === 'slow') return Array.from({ length: 200 }, (_, i) => (i % 2 ? { pause: 50 } : { content: `w${i} ` }))
  if (last === 'busy') return { status: 429, error: 'too many wait', headers: { 'retry-after': '7' } }
  return [{ content: `Answer to ${last}, turn ${body.messages.length}` }, { finish_reason: 'stop' }]
}

let server, browser
before(async () => {
  if (options.skip) return
  server = await startFakeServer(reply)
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
  if (pictures) mkdirSync(pictures, { recursive: true })
})
after(async () => {
  await browser?.close()
  server?.close()
})

// A fresh page whose errors, violations of the policy and requests to elsewhere fail the test.
async function open(t, { width = 1200, height = 800, dark = false } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? 'dark' : 'light' })
  const page = await context.newPage()
  const faults = []
  page.on('pageerror', (error) => faults.push(String(error)))
  page.on('console', (message) => message.type() === 'error' && !/status of 429/.test(message.text()) && faults.push(message.text()))
  page.on('request', (request) => {
    if (!/^(blob|data):/.test(request.url()) && !request.url().startsWith(server.url)) faults.push(request.url())
  })
  await page.goto(server.url)
  await page.getByLabel('Message', { exact: true }).waitFor()
  t.after(async () => {
    await context.close()
    assert.deepEqual(faults, [])
  })
  return page
}

async function say(page, text) {
  await page.getByLabel('Message', { exact: true }).fill(text)
  await page.keyboard.press('Enter')
}
const answers = (page) => page.locator('.message.assistant')
const finished = (page, n) => answers(page).nth(n - 1).getByRole('button', { name: 'Regenerate' }).waitFor()
const picture = (page, name) => pictures && page.screenshot({ path: `${pictures}/${name}.png` })

test('markdown, code and LaTeX are shown', options, async (t) => {
  const page = await open(t)
  await say(page, 'rich')
  await finished(page, 1)
  const answer = answers(page).first()
  assert.equal(await answer.locator('strong').textContent(), 'bold')
  assert.equal(await answer.locator('li').count(), 2)
  assert.equal(await answer.locator('td').count(), 2)
  assert.equal(await answer.locator('pre code').textContent(), 'print("<b>hi</b>")\n')
  assert.equal(await answer.locator('math').count(), 2, 'prices are no formulas')
  assert.match(await answer.textContent(), /it costs \$5 or \$6/)
  assert.equal(await answer.locator('a').getAttribute('rel'), 'noopener noreferrer nofollow')
  assert.match(await answer.textContent(), /12 \(8 cached\) → 7 tokens/)
  await picture(page, 'rich')
})

test('code is copied', options, async (t) => {
  const page = await open(t)
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await say(page, 'rich')
  await finished(page, 1)
  await page.locator('.code .copy').click()
  await page.locator('.code .copy', { hasText: 'Copied' }).waitFor()
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'print("<b>hi</b>")\n')
})

test('what a model writes cannot run, fetch or cover the page', options, async (t) => {
  const page = await open(t)
  await say(page, 'attack')
  await finished(page, 1)
  assert.equal(await page.evaluate(() => window.hacked), undefined)
  const answer = answers(page).first().locator('.markdown')
  assert.equal(await answer.locator('img, script, svg, iframe, form, [style], [onerror], [onload]').count(), 0)
  for (const link of await answer.locator('a, [href]').all())
    assert.doesNotMatch((await link.getAttribute('href')) ?? '', /javascript:/i)
})

test('thinking is open while it lasts and folds when the answer begins', options, async (t) => {
  const page = await open(t)
  await page.getByLabel('Think first').check()
  await say(page, 'think')
  await page.getByText('Thinking…').waitFor()
  assert(await page.getByText('Let me see.').isVisible())
  await finished(page, 1)
  assert.equal(await page.getByText('Let me see.').count(), 0)
  await page.getByRole('button', { name: 'Thoughts' }).click()
  assert(await page.getByText('Let me see. Yes.').isVisible())
  assert.deepEqual(server.seen.at(-1).body.thinking, { type: 'enabled' })
  await picture(page, 'thinking')
})

test('tool calls are shown', options, async (t) => {
  const page = await open(t)
  await say(page, 'tool')
  await finished(page, 1)
  assert.equal(await page.locator('.call summary code').textContent(), 'weather')
  assert.deepEqual(JSON.parse(await page.locator('.call pre').textContent()), { city: 'Oslo' })
})

test('stop ends the answer and the request', options, async (t) => {
  const page = await open(t)
  for (const stop of [() => page.getByRole('button', { name: 'Stop' }).click(), () => page.keyboard.press('Escape')]) {
    const count = await answers(page).count()
    await say(page, 'slow')
    await answers(page).nth(count).getByText('w2').waitFor()
    await stop()
    await finished(page, count + 1)
    assert.match(await answers(page).nth(count).textContent(), /stopped/)
    await page.waitForTimeout(100)
    assert(server.seen.at(-1).left, 'the connection is closed')
  }
})

test('an answer is generated again, a question edited', options, async (t) => {
  const page = await open(t)
  await say(page, 'first')
  await finished(page, 1)
  await say(page, 'second')
  await finished(page, 2)
  await answers(page).nth(0).getByRole('button', { name: 'Regenerate' }).click()
  await finished(page, 1)
  assert.equal(await answers(page).count(), 1, 'what followed is gone')
  assert.equal(server.seen.at(-1).body.messages.length, 1)
  await page.locator('.message.user').getByRole('button', { name: 'Edit' }).click()
  await page.getByLabel('Edit the message').fill('changed')
  await page.locator('.editing').getByRole('button', { name: 'Send' }).click()
  await finished(page, 1)
  assert.match(await answers(page).first().textContent(), /Answer to changed, turn 1/)
})

test('settings go with the request and only when set', options, async (t) => {
  const page = await open(t)
  await page.getByRole('button', { name: 'Settings' }).click()
  await page.getByLabel('System prompt').fill('Be brief.')
  await page.getByLabel('Temperature').fill('0.5')
  await page.getByLabel('Most tokens').fill('50')
  await page.getByLabel('Tools (a JSON list)').fill('[{"type": "function", "function": {"name": "f"}}]')
  await picture(page, 'settings')
  await page.getByRole('button', { name: 'Close the settings' }).click()
  await say(page, 'hello')
  await finished(page, 1)
  const { body } = server.seen.at(-1)
  assert.deepEqual(body.messages[0], { role: 'system', content: 'Be brief.' })
  assert.equal(body.temperature, 0.5)
  assert.equal(body.max_tokens, 50)
  assert.equal(body.tools[0].function.name, 'f')
  assert(!('top_p' in body))
})

test('conversations are kept, renamed, switched, exported and deleted', options, async (t) => {
  const page = await open(t)
  await say(page, 'apples')
  await finished(page, 1)
  await page.keyboard.press('Control+Shift+O')
  await say(page, 'pears')
  await finished(page, 1)
  await page.reload()
  const list = page.getByRole('navigation')
  await list.getByRole('button', { name: 'apples', exact: true }).click()
  assert.match(await answers(page).first().textContent(), /Answer to apples/)
  await list.getByRole('button', { name: 'Rename apples' }).click()
  await page.getByLabel('Title').fill('Fruit')
  await page.keyboard.press('Enter')
  await list.getByRole('button', { name: 'Fruit', exact: true }).waitFor()
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByLabel('Export').selectOption('markdown'),
  ])
  assert.equal(file.suggestedFilename(), 'Fruit.md')
  await list.getByRole('button', { name: 'Delete Fruit' }).click()
  await page.reload()
  assert.equal(await page.getByText('Fruit').count(), 0)
  assert(await list.getByRole('button', { name: 'pears', exact: true }).isVisible())
})

test('an error of the server is told', options, async (t) => {
  const page = await open(t)
  await say(page, 'busy')
  await finished(page, 1)
  assert.match(await page.locator('.error').textContent(), /too many wait \(try again in 7 s\)/)
})

test('the view of the server shows what /metrics says', options, async (t) => {
  const page = await open(t)
  await page.getByRole('button', { name: 'Server' }).click()
  await page.getByText('Running', { exact: true }).waitFor()
  assert.match(await page.locator('.tiles').textContent(), /Running3Waiting2/)
  assert.match(await page.locator('.tiles').textContent(), /Cache in use25 %Prompt tokens from cache40 %/)
  await page.waitForTimeout(2300)
  assert.match(await page.locator('.tiles').textContent(), /Tokens per second\d+\.\d/)
  assert((await page.locator('figure rect').count()) > 8)
  await picture(page, 'server')
})

test('everything is reached at phone width', options, async (t) => {
  const page = await open(t, { width: 360, height: 720, dark: true })
  await say(page, 'rich')
  await finished(page, 1)
  assert(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing sticks out')
  await picture(page, 'phone_dark')
  await page.getByRole('button', { name: 'Conversations' }).click()
  await page.getByRole('button', { name: 'New conversation' }).click()
  assert.equal(await answers(page).count(), 0)
  await page.getByRole('button', { name: 'Settings' }).click()
  assert(await page.getByLabel('System prompt').isVisible())
  await picture(page, 'phone_settings')
})

test('colours follow the choice', options, async (t) => {
  const page = await open(t)
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
  const light = await back()
  await page.getByLabel('Colours').selectOption('dark')
  assert.notEqual(await back(), light)
  await page.reload()
  await page.getByLabel('Colours').waitFor()
  assert.notEqual(await back(), light, 'it is kept')
})
