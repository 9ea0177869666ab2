import { context, SpanStatusCode, trace } from '@opentelemetry/api';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';

const exporter = new InMemorySpanExporter();
let runtime: Runtime;
beforeAll(async () => {
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
  );
  runtime = await createRuntime({ threads: 1 });
});
beforeEach(() => exporter.reset());
afterAll(async () => {
  await runtime.close();
  trace.disable();
  context.disable();
});

const messages = [{ role: 'user' as const, content: 'What color is snow?' }];

describe('a span', () => {
  it('tells of request and answer, and of no text', async () => {
    const answer = await runtime.createCompletion({ messages, temperature: 0, seed: 3, stop: ['zebra'] });
    const [span] = exporter.getFinishedSpans();
    expect(span!.name).toBe('chat');
    expect(span!.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'onpolicy',
      'gen_ai.request.temperature': 0,
      'gen_ai.request.seed': 3,
      'gen_ai.request.stop_sequences': ['zebra'],
      'gen_ai.output.type': 'text',
      'gen_ai.response.id': answer.id,
      'gen_ai.response.model': answer.model,
      'gen_ai.response.finish_reasons': ['stop'],
      'gen_ai.usage.input_tokens': answer.usage.prompt_tokens,
      'gen_ai.usage.output_tokens': answer.usage.completion_tokens,
    });
    expect(JSON.stringify(span!.attributes)).not.toMatch(/snow/i);
  });

  it('lasts as long as a stream', async () => {
    const stream = await runtime.createCompletion({ messages, n: 2, max_tokens: 2, stream: true });
    expect(exporter.getFinishedSpans()).toHaveLength(0);
    for await (const _ of stream);
    const [span] = exporter.getFinishedSpans();
    expect(span!.attributes).toMatchObject({
      'gen_ai.request.choice.count': 2,
      'gen_ai.response.finish_reasons': ['length', 'length'],
      'gen_ai.usage.output_tokens': 4,
    });
  });

  it('of a stream that was left says so', async () => {
    const stream = await runtime.createCompletion({
      messages,
      max_tokens: 400,
      ignore_eos: true,
      stream: true,
    });
    for await (const _ of stream) break;
    const [span] = exporter.getFinishedSpans();
    expect(span!.attributes).toMatchObject({
      'error.type': 'ABORTED',
      'gen_ai.response.finish_reasons': ['error'],
    });
    expect(span!.status.code).toBe(SpanStatusCode.ERROR);
  });

  it('of a request that fails has the code of its error', async () => {
    const model = '/nowhere.gguf';
    await expect(runtime.createCompletion({ messages, model })).rejects.toMatchObject({
      code: 'MODEL_NOT_FOUND',
    });
    const [span] = exporter.getFinishedSpans();
    expect(span!.name).toBe(`chat ${model}`);
    expect(span!.attributes['error.type']).toBe('MODEL_NOT_FOUND');
  });
});
