import assert from 'node:assert/strict';
import test from 'node:test';

import OpenAI from 'openai';

import * as known from './common.mjs';

const client = new OpenAI({baseURL: `${known.url}/v1`, apiKey: 'any', maxRetries: 0});
const beta = new OpenAI({baseURL: `${known.url}/beta`, apiKey: 'any', maxRetries: 0});
const model = 'tiny';
const ask = (content, more = {}) =>
  ({model, temperature: 0, messages: [{role: 'user', content}], ...more});
const tools = [{type: 'function',
  function: {name: 'add_numbers', description: known.description, parameters: known.schema}}];

test('openai: lists the models', async () => {
  const names = [];
  for await (const one of client.models.list()) names.push(one.id);
  assert.deepEqual(names, ['tiny']);
  assert.equal((await client.models.retrieve('tiny')).object, 'model');
});

test('openai: plain', async () => {
  const reply = await client.chat.completions.create(ask(known.france));
  assert.equal(reply.choices[0].message.content, known.paris);
  assert.equal(reply.usage.total_tokens, reply.usage.prompt_tokens + reply.usage.completion_tokens);
  assert.match(reply._request_id, /^req_/);
});

test('openai: streamed', async () => {
  const stream = await client.chat.completions.create(
    ask(known.france, {stream: true, stream_options: {include_usage: true}}));
  let text = '', usage;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? '';
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, known.paris);
  assert.ok(usage.completion_tokens > 3);
});

// The helper fails without an index, the first role or a finish reason.
test('openai: the stream helper joins a reply', async () => {
  const runner = client.chat.completions.stream(ask(known.both, {tools}));
  const final = await runner.finalChatCompletion();
  assert.equal(final.choices[0].finish_reason, 'tool_calls');
  assert.deepEqual(final.choices[0].message.tool_calls.map((call) => JSON.parse(call.function.arguments)),
    [{a: 957, b: 580}, {a: 365, b: 664}]);
});

test('openai: tools with a second turn', async () => {
  const messages = ask(known.both).messages;
  const first = await client.chat.completions.create(ask('', {messages, tools}));
  const message = first.choices[0].message;
  messages.push(message);
  for (const call of message.tool_calls)
    messages.push({role: 'tool', tool_call_id: call.id,
      content: known.add(JSON.parse(call.function.arguments))});
  const second = await client.chat.completions.create(ask('', {messages, tools}));
  assert.equal(second.choices[0].message.content, known.bothAnswer);
});

test('openai: the tool runner goes both turns by itself', async () => {
  const runner = client.chat.completions.runTools(ask(known.both, {
    tools: [{type: 'function', function: {name: 'add_numbers', description: known.description,
      parameters: known.schema, parse: JSON.parse, function: (args) => known.add(args)}}]}));
  assert.equal(await runner.finalContent(), known.bothAnswer);
});

test('openai: thinking', async () => {
  const reply = await client.chat.completions.create(ask(known.sum, {reasoning_effort: 'high'}));
  assert.equal(reply.choices[0].message.reasoning_content, known.reasoning);
  assert.equal(reply.choices[0].message.content, known.sumAnswer);
});

test('openai: fills in the middle', async () => {
  const reply = await beta.completions.create({model, temperature: 0, max_tokens: 20,
    prompt: 'There was once a red fox who lived by the market. One day, the', suffix: ' the river.'});
  assert.ok(reply.choices[0].text.length > 0);
});

test('openai: responses, plain and streamed, with a second turn', async () => {
  const flat = [{type: 'function', name: 'add_numbers', description: known.description,
    parameters: known.schema, strict: false}];
  const plain = await client.responses.create({model, temperature: 0, input: known.france});
  assert.equal(plain.output_text, known.paris);
  const stream = client.responses.stream({model, temperature: 0, input: known.both, tools: flat});
  const first = await stream.finalResponse();
  const results = first.output.map((call) => ({type: 'function_call_output', call_id: call.call_id,
    output: known.add(JSON.parse(call.arguments))}));
  const input = [{role: 'user', content: known.both},
    ...first.output.map(({type, call_id, name, arguments: text}) => ({type, call_id, name, arguments: text})), ...results];
  const second = await client.responses.create({model, temperature: 0, input, tools: flat});
  assert.equal(second.output_text, known.bothAnswer);
});

test('openai: errors', async () => {
  await assert.rejects(client.chat.completions.create(ask('x', {temperature: 9})), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.equal(error.param, 'temperature');
    return true;
  });
  await assert.rejects(client.models.retrieve('other'), OpenAI.NotFoundError);
});

test('openai: abort', async () => {
  const stream = await client.chat.completions.create(
    ask(known.story, {stream: true, max_tokens: 1500, ignore_eos: true}));
  let count = 0;
  for await (const chunk of stream) {
    assert.ok(chunk.choices.length > 0);
    if (++count === 5) stream.controller.abort();
  }
  assert.ok(count < 20, `${count} chunks came`);
  const reply = await client.chat.completions.create(ask(known.france));
  assert.equal(reply.choices[0].message.content, known.paris);
});
