import assert from 'node:assert/strict'
import test from 'node:test'
import { load } from './bundle.mjs'

const { EventReader, addChunk, requestBody } = await load('api.ts')
const { Metrics, buckets, quantile } = await load('metrics.ts')
const { asMarkdown } = await load('store.ts')
const { defaultSettings } = await load('types.ts')

test('a stream that is cut anywhere gives the same events', () => {
  const text = ': wait\n\ndata: {"a": "ü"}\n\ndata: one\ndata: two\r\n\r\nevent: x\ndata: [DONE]\n\n'
  for (let i = 0; i <= text.length; i++) {
    const reader = new EventReader()
    const events = [...reader.push(text.slice(0, i)), ...reader.push(text.slice(i))]
    assert.deepEqual(events, ['{"a": "ü"}', 'one\ntwo', '[DONE]'], `cut at ${i}`)
  }
})

test('deltas of tool calls are joined by their index', () => {
  const part = { content: '', reasoning: '', toolCalls: [] }
  const delta = (delta) => addChunk(part, { choices: [{ delta }] })
  delta({ reasoning_content: 'hm' })
  delta({ tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '' } }] })
  delta({ tool_calls: [{ index: 0, function: { arguments: '{"x"' } }] })
  delta({ tool_calls: [{ index: 1, id: 'b', function: { name: 'g', arguments: '{}' } }] })
  delta({ tool_calls: [{ index: 0, function: { arguments: ': 1}' } }] })
  addChunk(part, { choices: [{ delta: {}, finish_reason: 'tool_calls' }] })
  assert.deepEqual(part.toolCalls, [
    { name: 'f', arguments: '{"x": 1}' },
    { name: 'g', arguments: '{}' },
  ])
  assert.equal(part.reasoning, 'hm')
  assert.equal(part.finish, 'tool_calls')
  assert.throws(() => addChunk(part, { error: { message: 'no' } }), /no/)
})

test('a request says only what was set', () => {
  const body = requestBody([{ role: 'user', content: 'hi' }], { ...defaultSettings, system: 'be brief', temperature: 0 })
  assert.deepEqual(body.messages, [
    { role: 'system', content: 'be brief' },
    { role: 'user', content: 'hi' },
  ])
  assert.equal(body.temperature, 0)
  for (const name of ['top_p', 'top_k', 'min_p', 'max_tokens', 'seed', 'tools']) assert(!(name in body), name)
})

test('metrics are read by name, summed over labels', () => {
  const metrics = new Metrics(
    '# HELP a_total x\n# TYPE a_total counter\na_total{r="x"} 2\na_total{r="y"} 3\nb 1.5\n' +
      'h_bucket{le="0.5"} 1\nh_bucket{le="1"} 3\nh_bucket{le="+Inf"} 4\nh_sum 5\nh_count 4\n',
  )
  assert.equal(metrics.get('a_total'), 5)
  assert.equal(metrics.get('a_total{r="x"}'), 2)
  assert.equal(metrics.get('b'), 1.5)
  assert.equal(metrics.get('missing'), 0)
  const histogram = metrics.histogram('h')
  assert.deepEqual(buckets(histogram), [1, 2, 1])
  assert.equal(quantile(histogram, 0.5), 0.75)
  assert.equal(quantile(histogram, 0.99), 1, 'above the last bound nothing is known')
  assert(Number.isNaN(quantile(metrics.histogram('none'), 0.5)))
})

test('a conversation is exported as Markdown', () => {
  const text = asMarkdown({
    title: 'T',
    settings: { ...defaultSettings, system: 'S' },
    messages: [
      { role: 'user', content: 'Q' },
      { role: 'assistant', content: 'A', reasoning: 'one\ntwo', toolCalls: [{ name: 'f', arguments: '{}' }] },
    ],
  })
  for (const piece of ['# T', '## System\n\nS', '## User\n\nQ', '> one\n> two', 'A\n', '"name":"f"'])
    assert(text.includes(piece), piece)
})
