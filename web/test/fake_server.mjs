// Serves the built page under the policy that hadal sends, and answers as hadal's API does, from a
// script: so that the page is tested without a model.
import { createServer } from 'node:http'
import { readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const files = fileURLToPath(new URL('../../src/server/web/static', import.meta.url))
export const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
  "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' }

const pause = (ms) => new Promise((done) => setTimeout(done, ms))

// reply(body) gives a list of deltas, or { status, error, headers }.
export async function startFakeServer(reply) {
  const seen = []
  let computed = 0
  const server = createServer(async (request, response) => {
    if (request.url === '/v1/models') {
      response.setHeader('content-type', 'application/json')
      return response.end(JSON.stringify({ data: [{ id: 'tiny' }] }))
    }
    if (request.url === '/metrics') {
      computed += 100
      return response.end(metricsText(computed))
    }
    if (request.url === '/v1/chat/completions') {
      let text = ''
      for await (const piece of request) text += piece
      const body = JSON.parse(text)
      const call = { body, left: false }
      seen.push(call)
      response.on('close', () => (call.left = !response.writableEnded))
      return stream(reply(body), response)
    }
    const path = request.url === '/' ? '/index.html' : request.url
    try {
      const content = readFileSync(join(files, path))
      response.setHeader('content-type', types[extname(path)] ?? 'application/octet-stream')
      response.setHeader('content-security-policy', policy)
      response.end(content)
    } catch {
      response.statusCode = 404
      response.end()
    }
  })
  await new Promise((done) => server.listen(0, '127.0.0.1', done))
  return { url: `http://127.0.0.1:${server.address().port}`, seen, close: () => (server.closeAllConnections(), server.close()) }
}

async function stream(script, response) {
  if (!Array.isArray(script)) {
    response.writeHead(script.status, { 'content-type': 'application/json', ...script.headers })
    return response.end(JSON.stringify({ error: { message: script.error } }))
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const send = (value) => response.write(`data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`)
  for (const delta of script) {
    if (response.destroyed) return
    if (delta.pause) await pause(delta.pause)
    else if (delta.finish_reason) send({ choices: [{ index: 0, delta: {}, finish_reason: delta.finish_reason }] })
    else send({ choices: [{ index: 0, delta }] })
  }
  send({ choices: [], usage: { prompt_tokens: 12, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 8 } } })
  send('[DONE]')
  response.end()
}

function metricsText(computed) {
  const histogram = (name) =>
    [0.01, 0.05, 0.1, 0.5].map((le, i) => `${name}_bucket{le="${le}"} ${[2, 9, 14, 15][i]}`).join('\n') +
    `\n${name}_bucket{le="+Inf"} 15\n${name}_sum 1\n${name}_count 15\n`
  return (
    'hadal_sequences_running 3\nhadal_sequences_waiting 2\nhadal_cache_usage_ratio 0.25\nhadal_cache_blocks 128\n' +
    'hadal_cache_blocks_used 32\nhadal_prompt_tokens_total 1000\nhadal_prompt_tokens_cached_total 400\n' +
    `hadal_computed_tokens_total ${computed}\nhadal_preemptions_total{rows="saved"} 1\n` +
    ['hadal_time_to_first_token_seconds', 'hadal_inter_token_seconds', 'hadal_queue_seconds', 'hadal_end_to_end_seconds']
      .map(histogram)
      .join('')
  )
}
