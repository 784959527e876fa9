import assert from 'node:assert/strict';
import test from 'node:test';

import Anthropic from '@anthropic-ai/sdk';

import * as known from './common.mjs';

const client = new Anthropic({baseURL: known.url, apiKey: 'any', maxRetries: 0});
const ask = (content, more = {}) => ({model: 'tiny', max_tokens: 200, temperature: 0,
  messages: typeof content === 'string' ? [{role: 'user', content}] : content, ...more});
const tools = [{name: 'add_numbers', description: known.description, input_schema: known.schema}];

test('anthropic: plain', async () => {
  const message = await client.messages.create(ask(known.france));
  assert.deepEqual(message.content, [{type: 'text', text: known.paris}]);
  assert.equal(message.stop_reason, 'end_turn');
  assert.match(message._request_id, /^req_/);
});

test('anthropic: streamed', async () => {
  const stream = client.messages.stream(ask(known.france));
  let text = '';
  stream.on('text', (piece) => { text += piece; });
  const message = await stream.finalMessage();
  assert.equal(text, known.paris);
  assert.equal(message.content[0].text, known.paris);
  assert.ok(message.usage.output_tokens > 3);
});

test('anthropic: tools with a second turn, plain and streamed', async () => {
  for (const first of [await client.messages.create(ask(known.both, {tools})),
    await client.messages.stream(ask(known.both, {tools})).finalMessage()]) {
    assert.equal(first.stop_reason, 'tool_use');
    const results = first.content.map((call) =>
      ({type: 'tool_result', tool_use_id: call.id, content: known.add(call.input)}));
    const second = await client.messages.create(ask([{role: 'user', content: known.both},
      {role: 'assistant', content: first.content}, {role: 'user', content: results}], {tools}));
    assert.equal(second.content[0].text, known.bothAnswer);
  }
});

test('anthropic: thinking', async () => {
  const message = await client.messages.stream(
    ask(known.sum, {thinking: {type: 'enabled', budget_tokens: 1024}, max_tokens: 2000})).finalMessage();
  assert.deepEqual(message.content.map((block) => block.type), ['thinking', 'text']);
  assert.equal(message.content[0].thinking, known.reasoning);
  const again = await client.messages.create(ask([{role: 'user', content: known.sum},
    {role: 'assistant', content: message.content}, {role: 'user', content: known.france}]));
  assert.equal(again.content[0].text, known.paris);
});

test('anthropic: counts tokens', async () => {
  const {input_tokens: count} = await client.messages.countTokens(
    {model: 'tiny', messages: [{role: 'user', content: known.france}]});
  const {usage} = await client.messages.create(ask(known.france));
  assert.equal(usage.input_tokens + usage.cache_read_input_tokens, count);
});

test('anthropic: errors', async () => {
  await assert.rejects(client.messages.create(ask(known.france, {temperature: 4})), (error) => {
    assert.ok(error instanceof Anthropic.BadRequestError);
    assert.match(error.message, /temperature/);
    return true;
  });
});

test('anthropic: abort', async () => {
  const stream = client.messages.stream(ask(known.story, {max_tokens: 1500}));
  stream.on('text', () => stream.abort());
  await assert.rejects(stream.finalMessage(), Anthropic.APIUserAbortError);
});
