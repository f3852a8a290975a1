// @grpc/grpc-js without any .proto file: everything it knows comes from reflection.
import assert from 'node:assert/strict';
import grpc from '@grpc/grpc-js';
import reflection from 'grpc-reflection-js';
import { ANSWER, QUESTION, grpcAddress, model, run, tell } from './cases.mjs';

const credentials = grpc.credentials.createInsecure();
const reflected = new reflection.Client(grpcAddress, credentials);

async function serviceClient(name) {
  const root = await reflected.fileContainingSymbol(name);
  root.resolveAll();
  const service = root.lookupService(name);
  service.resolveAll();
  const definition = {};
  for (const method of service.methodsArray) {
    method.resolve();
    definition[method.name] = {
      path: `/${name}/${method.name}`,
      requestStream: Boolean(method.requestStream),
      responseStream: Boolean(method.responseStream),
      requestSerialize: (value) => Buffer.from(
        method.resolvedRequestType.encode(method.resolvedRequestType.fromObject(value)).finish()),
      requestDeserialize: (bytes) => method.resolvedRequestType.decode(bytes),
      responseSerialize: (value) => Buffer.from(method.resolvedResponseType.encode(value).finish()),
      responseDeserialize: (bytes) => method.resolvedResponseType.toObject(
        method.resolvedResponseType.decode(bytes), { longs: Number, enums: String }),
      originalName: method.name,
    };
  }
  const Client = grpc.makeGenericClientConstructor(definition, name);
  return { client: new Client(grpcAddress, credentials), root };
}

const chat = (more = {}) => ({
  model, sampling: { temperature: 0 },
  chat: { messages_json: Buffer.from(JSON.stringify([{ role: 'user', content: QUESTION }])) }, ...more,
});

function collect(stream, onEvent = () => {}) {
  return new Promise((resolve) => {
    const events = [];
    let problem = null;
    stream.on('data', (event) => { events.push(event); onEvent(event); });
    stream.on('error', (error) => { problem = error; });
    stream.on('status', (status) => resolve({ events, problem, status }));
  });
}

const unary = (client, method, request, metadata = new grpc.Metadata()) => new Promise((resolve, reject) => {
  client[method](request, metadata, (error, answer) => (error ? reject(error) : resolve(answer)));
});

function detailOf(root, status) {
  const [bytes] = status.metadata.get('berth-error-bin');
  assert.ok(bytes, 'no berth-error-bin in the trailer');
  const type = root.lookupType('berth.v1.ErrorDetail');
  return type.toObject(type.decode(bytes));
}

const cases = {
  async reflection() {
    const services = await reflected.listServices();
    for (const name of ['berth.v1.Inference', 'berth.v1.Admin', 'grpc.health.v1.Health']) {
      assert.ok(services.includes(name), services.join());
    }
    assert.ok(!services.includes('berth.v1.Worker'));
  },

  async generate() {
    const { client } = await serviceClient('berth.v1.Inference');
    const { events, status } = await collect(client.Generate(chat()));
    assert.equal(status.code, grpc.status.OK);
    assert.equal(events.map((event) => event.token?.text ?? '').join(''), ANSWER);
    assert.equal(events[0].accepted.model, model);
    assert.equal(events.at(-1).done.finish_reason, 'stop');
  },

  async error() {
    const { client, root } = await serviceClient('berth.v1.Inference');
    const { status, events } = await collect(client.Generate(chat({ model: 'nowhere' })));
    assert.equal(status.code, grpc.status.NOT_FOUND);
    const detail = detailOf(root, status);
    assert.equal(detail.reason, 'unknown_model');
    assert.ok(detail.request_id);
    assert.equal(events.at(-1).error.reason, 'unknown_model');
  },

  async tokens() {
    const { client } = await serviceClient('berth.v1.Inference');
    const text = Buffer.from('The capital of France');
    const tokens = await unary(client, 'Tokenize', { model, text });
    const back = await unary(client, 'Detokenize', { model, ids: tokens.ids });
    assert.match(Buffer.from(back.text).toString(), /The capital of France/);
    const count = await unary(client, 'CountTokens', { model, text });
    assert.equal(count.tokens, tokens.ids.length);
    assert.ok(count.window > 0);
  },

  async embed() {
    const { client } = await serviceClient('berth.v1.Inference');
    const answer = await unary(client, 'Embed', { model, inputs: [{ text: Buffer.from('one') }] });
    assert.ok(answer.embeddings[0].values.length > 1);
  },

  async health() {
    const { client, root } = await serviceClient('grpc.health.v1.Health');
    const states = [];
    const watch = client.Watch({ service: model });
    const ready = new Promise((resolve) => {
      watch.on('data', (event) => {
        states.push(event.status);
        tell(`state ${event.status}`);
        if (event.status === 'SERVING') resolve();
      });
      watch.on('error', () => {});
    });
    const inference = await serviceClient('berth.v1.Inference');
    const server = await unary(client, 'Check', { service: '' });
    assert.equal(server.status, 'SERVING');
    const unknown = await unary(client, 'Check', { service: 'nowhere' }).catch((error) => error);
    assert.equal(unknown.code, grpc.status.NOT_FOUND);
    await collect(inference.client.Generate(chat()));
    await ready;
    assert.equal(states[0], 'NOT_SERVING');
    watch.cancel();
    assert.ok(root);
  },

  async cancel() {
    const { client } = await serviceClient('berth.v1.Inference');
    const call = client.Generate({ model, prompt: Buffer.from('once upon a time'), sampling: { temperature: 0 } });
    let tokens = 0;
    const { status } = await collect(call, (event) => {
      if (event.token && (tokens += 1) === 3) call.cancel();
    });
    assert.equal(status.code, grpc.status.CANCELLED);
  },

  async deadline() {
    const { client } = await serviceClient('berth.v1.Inference');
    const { status } = await collect(client.Generate(
      { model, prompt: Buffer.from('once upon a time'), sampling: { temperature: 0 }, deadline_ms: 500 }));
    assert.equal(status.code, grpc.status.DEADLINE_EXCEEDED);
  },
};

await run(cases);
