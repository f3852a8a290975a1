// npm's ai with @ai-sdk/openai-compatible, as web applications use it.
import assert from 'node:assert/strict';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { embed, generateObject, generateText, streamText, tool } from 'ai';
import { z } from 'zod';
import { ANSWER, QUESTION, model, run, url } from './cases.mjs';

const berth = createOpenAICompatible({
  name: 'berth', baseURL: `${url}/v1`, includeUsage: true, supportsStructuredOutputs: true,
});

const cases = {
  async text() {
    const answer = await generateText({ model: berth(model), prompt: QUESTION, temperature: 0 });
    assert.equal(answer.text, ANSWER);
    assert.equal(answer.finishReason, 'stop');
    assert.ok(answer.usage.outputTokens > 0);
  },

  async stream() {
    const answer = streamText({ model: berth(model), prompt: QUESTION, temperature: 0 });
    let text = '';
    for await (const piece of answer.textStream) text += piece;
    assert.equal(text, ANSWER);
    assert.ok((await answer.usage).inputTokens > 0);
  },

  async object() {
    const answer = await generateObject({
      model: berth(model), prompt: QUESTION, temperature: 0,
      schema: z.object({ name: z.enum(['Paris', 'Rome']) }),
    });
    assert.ok(['Paris', 'Rome'].includes(answer.object.name));
  },

  async tools() {
    const answer = await generateText({
      model: berth(model), prompt: QUESTION, temperature: 0, toolChoice: 'required', maxOutputTokens: 300,
      tools: {
        get_weather: tool({
          description: 'The weather of a city',
          inputSchema: z.object({ days: z.number().int() }),
        }),
      },
    });
    assert.equal(answer.toolCalls[0].toolName, 'get_weather');
    assert.ok(Number.isInteger(answer.toolCalls[0].input.days));
  },

  async embed() {
    const answer = await embed({ model: berth.textEmbeddingModel(model), value: 'one' });
    assert.ok(answer.embedding.length > 1);
  },
};

await run(cases);
