// npm's openai, as most programs use it.
import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { ANSWER, QUESTION, model, run, tell, url } from './cases.mjs';

const apiKey = process.env.BERTH_API_KEY;
// The SDK insists on some text; where the server has no keys it is not looked at.
const client = new OpenAI({
  baseURL: `${url}/v1`,
  apiKey: apiKey ?? 'none',
  timeout: 60_000,
});
const ask = [{ role: 'user', content: QUESTION }];
const weather = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'The weather of a city',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string', maxLength: 12 }, days: { type: 'integer' } },
      required: ['city', 'days'],
      additionalProperties: false,
    },
  },
};
const forced = { type: 'function', function: { name: 'get_weather' } };

function isWeatherCall(call) {
  assert.equal(call.type, 'function');
  assert.equal(call.function.name, 'get_weather');
  assert.ok(call.id.length > 0);
  const given = JSON.parse(call.function.arguments);
  assert.equal(typeof given.city, 'string');
  assert.ok(Number.isInteger(given.days));
}

const cases = {
  async chat() {
    const { data, response } = await client.chat.completions
      .create({ model, messages: ask, temperature: 0, user: 'ada' })
      .withResponse();
    assert.equal(data.object, 'chat.completion');
    assert.equal(data.model, model);
    assert.equal(data.choices.length, 1);
    assert.deepEqual([data.choices[0].message.role, data.choices[0].message.content], ['assistant', ANSWER]);
    assert.equal(data.choices[0].finish_reason, 'stop');
    assert.equal(data.usage.total_tokens, data.usage.prompt_tokens + data.usage.completion_tokens);
    assert.ok(response.headers.get('x-request-id'));
  },

  async remembers() {
    const messages = [{ role: 'user', content: 'My name is Tom.' }];
    const first = await client.chat.completions.create({ model, messages, temperature: 0 });
    messages.push(first.choices[0].message, { role: 'user', content: 'What is my name?' });
    const second = await client.chat.completions.create({ model, messages, temperature: 0 });
    assert.match(second.choices[0].message.content, /Tom/);
  },

  async stream() {
    const stream = await client.chat.completions.create({
      model, messages: ask, temperature: 0, stream: true, stream_options: { include_usage: true },
    });
    let text = '';
    let finish = null;
    let usage = null;
    let ids = new Set();
    for await (const chunk of stream) {
      assert.equal(chunk.object, 'chat.completion.chunk');
      ids.add(chunk.id);
      if (chunk.usage) {
        usage = chunk.usage;
        assert.equal(chunk.choices.length, 0);
        continue;
      }
      text += chunk.choices[0].delta.content ?? '';
      finish = chunk.choices[0].finish_reason ?? finish;
    }
    assert.equal(text, ANSWER);
    assert.equal(finish, 'stop');
    assert.equal(ids.size, 1);
    assert.ok(usage.completion_tokens > 0);
  },

  async stream_helper() {
    const runner = client.chat.completions.stream({ model, messages: ask, temperature: 0 });
    let text = '';
    runner.on('content', (piece) => { text += piece; });
    const whole = await runner.finalChatCompletion();
    assert.equal(text, ANSWER);
    assert.equal(whole.choices[0].message.content, ANSWER);
  },

  async tools() {
    const answer = await client.chat.completions.create({
      model, messages: ask, tools: [weather], tool_choice: forced, temperature: 0, max_tokens: 200,
    });
    assert.equal(answer.choices[0].finish_reason, 'tool_calls');
    assert.equal(answer.choices[0].message.tool_calls.length, 1);
    isWeatherCall(answer.choices[0].message.tool_calls[0]);
  },

  async tools_stream() {
    const stream = client.chat.completions.stream({
      model, messages: ask, tools: [weather], tool_choice: 'required', temperature: 0, max_tokens: 300,
    });
    let pieces = 0;
    stream.on('tool_calls.function.arguments.delta', () => { pieces += 1; });
    const whole = await stream.finalChatCompletion();
    assert.equal(whole.choices[0].finish_reason, 'tool_calls');
    assert.ok(pieces > 1, `arguments came in ${pieces} piece(s)`);
    whole.choices[0].message.tool_calls.forEach(isWeatherCall);
  },

  async json_object() {
    const answer = await client.chat.completions.create({
      model, messages: ask, response_format: { type: 'json_object' }, temperature: 0, max_tokens: 120,
      logit_bias: {},
    });
    if (answer.choices[0].finish_reason === 'stop') JSON.parse(answer.choices[0].message.content);
    else assert.match(answer.choices[0].message.content, /^\s*\{/);
  },

  async json_schema() {
    const City = z.object({ name: z.enum(['Paris', 'Rome']), large: z.boolean() });
    const answer = await client.chat.completions.parse({
      model, messages: ask, response_format: zodResponseFormat(City, 'city'), temperature: 0,
    });
    const parsed = answer.choices[0].message.parsed;
    assert.ok(['Paris', 'Rome'].includes(parsed.name));
    assert.equal(typeof parsed.large, 'boolean');
  },

  async completion() {
    const answer = await client.completions.create({
      model, prompt: 'once upon a time', max_tokens: 4, temperature: 0, logprobs: 2,
    });
    assert.equal(answer.object, 'text_completion');
    assert.equal(answer.usage.completion_tokens, 4);
    assert.equal(answer.choices[0].logprobs.tokens.length, 4);
    assert.equal(answer.choices[0].finish_reason, 'length');
  },

  async logprobs() {
    const answer = await client.chat.completions.create({
      model, messages: ask, temperature: 0, logprobs: true, top_logprobs: 3, max_tokens: 3,
    });
    const tokens = answer.choices[0].logprobs.content;
    assert.equal(tokens.length, 3);
    assert.equal(tokens[0].top_logprobs.length, 3);
    assert.ok(tokens[0].logprob <= 0);
  },

  async embeddings() {
    // The SDK asks for base64 unless it is told otherwise.
    const input = ['one', 'two words'];
    const coded = await client.embeddings.create({ model, input });
    const plain = await client.embeddings.create({ model, input, encoding_format: 'float' });
    assert.equal(coded.data.length, 2);
    for (const [i, one] of coded.data.entries()) {
      assert.equal(one.index, i);
      assert.equal(one.embedding.length, plain.data[i].embedding.length);
      one.embedding.forEach((value, k) => {
        assert.ok(Math.abs(value - plain.data[i].embedding[k]) < 1e-4);
      });
    }
    const cut = await client.embeddings.create({ model, input: 'one', dimensions: 4 });
    assert.equal(cut.data[0].embedding.length, 4);
  },

  async models() {
    const names = [];
    for await (const one of client.models.list()) names.push(one.id);
    assert.ok(names.includes(model), names.join());
    assert.equal((await client.models.retrieve(model)).id, model);
  },

  async errors() {
    const refused = async (type, status, code, body) => {
      const problem = await client.chat.completions.create(body).then(() => null, (error) => error);
      assert.ok(problem instanceof type, String(problem));
      assert.equal(problem.status, status);
      assert.equal(problem.code, code);
      return problem;
    };
    await refused(OpenAI.NotFoundError, 404, 'unknown_model', { model: 'nowhere', messages: ask });
    const bad = await refused(OpenAI.BadRequestError, 400, 'invalid_argument',
      { model, messages: ask, temperature: 'hot' });
    assert.equal(bad.param, 'temperature');
    await refused(OpenAI.BadRequestError, 400, 'invalid_argument', { model, messages: ask, n: -1 });
  },

  // The scenario checks that the work ended.
  async abort() {
    const controller = new AbortController();
    const stream = await client.completions.create(
      { model, prompt: 'once upon a time', temperature: 0, stream: true },
      { signal: controller.signal });
    let pieces = 0;
    try {
      for await (const chunk of stream) {
        pieces += 1;
        if (pieces === 3) controller.abort();
      }
    } catch (problem) {
      assert.ok(problem instanceof OpenAI.APIUserAbortError || problem.name === 'AbortError', String(problem));
    }
    assert.ok(pieces >= 3);
  },

  // Times out again and again while the model loads, as its own retries do; the scenario lets the
  // load end, and counts how many there were.
  async retries() {
    const impatient = client.withOptions({ timeout: 400, maxRetries: 500 });
    tell('asking');
    const answer = await impatient.chat.completions.create({ model, messages: ask, temperature: 0 });
    assert.equal(answer.object, 'chat.completion');
  },
};

await run(cases);
