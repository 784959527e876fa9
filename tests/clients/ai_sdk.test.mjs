import assert from 'node:assert/strict';
import test from 'node:test';

import {createDeepSeek} from '@ai-sdk/deepseek';
import {createOpenAICompatible} from '@ai-sdk/openai-compatible';
import {APICallError, generateText, jsonSchema, stepCountIs, streamText, tool} from 'ai';

import * as known from './common.mjs';

const providers = {
  deepseek: createDeepSeek({baseURL: `${known.url}/v1`, apiKey: 'any'}),
  'openai-compatible': createOpenAICompatible({name: 'hadal', baseURL: `${known.url}/v1`, apiKey: 'any'}),
};
const tools = {add_numbers: tool({description: known.description, inputSchema: jsonSchema(known.schema),
  execute: async (args) => known.add(args)})};

for (const [name, provider] of Object.entries(providers)) {
  const model = provider('tiny');
  const fixed = {temperature: 0, maxRetries: 0};

  test(`ai, ${name}: plain`, async () => {
    const {text, finishReason, usage} = await generateText({model, prompt: known.france, ...fixed});
    assert.equal(text, known.paris);
    assert.equal(finishReason, 'stop');
    assert.ok(usage.inputTokens > 3 && usage.outputTokens > 3);
  });

  test(`ai, ${name}: streamed`, async () => {
    const result = streamText({model, prompt: known.france, ...fixed});
    let text = '';
    for await (const piece of result.textStream) text += piece;
    assert.equal(text, known.paris);
    assert.equal(await result.finishReason, 'stop');
  });

  test(`ai, ${name}: tools with a second turn, plain and streamed`, async () => {
    const plain = await generateText({model, prompt: known.both, tools, stopWhen: stepCountIs(3), ...fixed});
    assert.equal(plain.text, known.bothAnswer);
    assert.deepEqual(plain.steps[0].toolCalls.map((call) => call.input), [{a: 957, b: 580}, {a: 365, b: 664}]);
    const streamed = streamText({model, prompt: known.both, tools, stopWhen: stepCountIs(3), ...fixed});
    await streamed.consumeStream();
    assert.equal(await streamed.text, known.bothAnswer);
  });

  test(`ai, ${name}: a tool that must be called`, async () => {
    const {toolCalls} = await generateText({model, prompt: known.both, tools, toolChoice: 'required', ...fixed});
    assert.ok(toolCalls.length > 0);
  });

  test(`ai, ${name}: thinking, and its text sent back`, async () => {
    const thinker = provider('deepseek-reasoner');
    const first = await generateText({model: thinker, prompt: known.sum, ...fixed});
    // The DeepSeek provider sends no temperature to this model, so the draw is the model's own.
    assert.match(first.reasoningText, /^I start with 7 and add 5\. The result is \d+\.$/);
    assert.match(first.text, /^7 \+ 5 = \d+\.$/);
    const streamed = streamText({model: thinker, prompt: known.sum, ...fixed});
    await streamed.consumeStream();
    assert.match(await streamed.reasoningText, /^I start with 7 and add 5\./);
    const second = await generateText({model, ...fixed, messages: [{role: 'user', content: known.sum},
      ...first.response.messages, {role: 'user', content: known.france}]});
    assert.equal(second.text, known.paris);
  });

  test(`ai, ${name}: errors`, async () => {
    await assert.rejects(generateText({model, prompt: 'x', temperature: 9, maxRetries: 0}), (error) => {
      assert.ok(APICallError.isInstance(error));
      assert.equal(error.statusCode, 400);
      assert.match(error.message, /temperature/);
      return true;
    });
  });

  test(`ai, ${name}: abort`, async () => {
    const controller = new AbortController();
    const result = streamText({model, prompt: known.story, maxOutputTokens: 1500, abortSignal: controller.signal, ...fixed});
    let count = 0;
    for await (const part of result.fullStream) {
      if (part.type === 'text-delta' && ++count === 3) controller.abort();
    }
    assert.ok(count >= 3);
  });
}
