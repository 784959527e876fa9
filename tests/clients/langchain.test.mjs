import assert from 'node:assert/strict';
import test from 'node:test';

import {HumanMessage, ToolMessage} from '@langchain/core/messages';
import {tool} from '@langchain/core/tools';
import {ChatDeepSeek} from '@langchain/deepseek';

import * as known from './common.mjs';

const make = (more = {}) => new ChatDeepSeek({model: 'tiny', apiKey: 'any', temperature: 0, maxRetries: 0,
  configuration: {baseURL: `${known.url}/v1`}, ...more});
const adder = tool(async (args) => known.add(args),
  {name: 'add_numbers', description: known.description, schema: known.schema});

test('langchain: plain', async () => {
  const reply = await make().invoke(known.france);
  assert.equal(reply.content, known.paris);
  assert.ok(reply.usage_metadata.output_tokens > 3);
});

test('langchain: streamed', async () => {
  let text = '';
  for await (const chunk of await make().stream(known.france)) text += chunk.content;
  assert.equal(text, known.paris);
});

test('langchain: tools with a second turn', async () => {
  const model = make().bindTools([adder]);
  const messages = [new HumanMessage(known.both)];
  const first = await model.invoke(messages);
  assert.deepEqual(first.tool_calls.map((call) => call.args), [{a: 957, b: 580}, {a: 365, b: 664}]);
  messages.push(first);
  for (const call of first.tool_calls) {
    const result = await adder.invoke(call);
    assert.ok(result instanceof ToolMessage);
    messages.push(result);
  }
  assert.equal((await model.invoke(messages)).content, known.bothAnswer);
});

test('langchain: streamed tools', async () => {
  let whole;
  for await (const chunk of await make().bindTools([adder]).stream(known.both))
    whole = whole === undefined ? chunk : whole.concat(chunk);
  assert.deepEqual(whole.tool_calls.map((call) => call.args), [{a: 957, b: 580}, {a: 365, b: 664}]);
});

test('langchain: thinking', async () => {
  const reply = await make({model: 'deepseek-reasoner'}).invoke(known.sum);
  assert.equal(reply.additional_kwargs.reasoning_content, known.reasoning);
  assert.equal(reply.content, known.sumAnswer);
});

test('langchain: errors', async () => {
  await assert.rejects(make({temperature: 9}).invoke('x'), /temperature/);
});

test('langchain: abort', async () => {
  const controller = new AbortController();
  await assert.rejects(async () => {
    for await (const chunk of await make({maxTokens: 1500}).stream(known.story, {signal: controller.signal})) {
      assert.ok(chunk);
      controller.abort();
    }
  });
});
