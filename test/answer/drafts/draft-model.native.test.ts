/** A smaller model that drafts: it changes no token, its cache follows the sequences, and its memory is counted. */
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { ChatCompletion } from '../../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { measureNoSteps } from '../../fakes/step-costs.ts';
import { EXACT_MODEL, type Fields, OTHER_MODEL } from '../fields/model.ts';

const EMBEDDED = path.resolve('models/onpolicy-tiny.gguf');
const ITSELF = { method: 'draft', model: EXACT_MODEL, maxTokens: 6 } as const;
const OTHER = { method: 'draft', model: OTHER_MODEL, maxTokens: 6 } as const;

measureNoSteps();
let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1, model: EXACT_MODEL, models: { small: EXACT_MODEL } });
});
afterAll(() => runtime.close());

async function ask(fields: Fields, content = 'Once upon a time there was a bear.'): Promise<ChatCompletion> {
  const messages = [{ role: 'user' as const, content }];
  return await runtime.createCompletion({ messages, seed: 5, max_tokens: 40, ...fields, stream: false });
}

const texts = ({ choices }: ChatCompletion) => choices.map(({ message }) => message.content);
const draftsOf = ({ usage }: ChatCompletion) => usage.completion_tokens_details!;

/** Steps that an answer took. */
async function measure(fields: Fields) {
  const before = runtime.stats().steps;
  const answer = await ask(fields);
  return { answer, steps: runtime.stats().steps - before };
}

describe('a draft model', () => {
  it.each<[string, Fields]>([
    ['alone', {}],
    ['at temperature 0', { temperature: 0 }],
    ['with penalties', { repetition_penalty: 1.2, frequency_penalty: 0.3 }],
    ['with filters', { top_k: 20, top_p: 0.9, min_p: 0.02 }],
    ['for several choices', { n: 4 }],
    ['under a grammar', { structured_outputs: { regex: '[a-z ]{30}' }, max_tokens: 60 }],
    ['with log-probabilities', { logprobs: true, top_logprobs: 2 }],
  ])('that is the model itself drafts what is sampled: %s', async (_, fields) => {
    const plain = await measure({ ...fields, speculation: false });
    const drafted = await measure({ ...fields, speculation: ITSELF });
    expect(texts(drafted.answer)).toEqual(texts(plain.answer));
    expect(drafted.answer.choices.map(({ finish_reason }) => finish_reason)).toEqual(
      plain.answer.choices.map(({ finish_reason }) => finish_reason),
    );
    expect(drafted.steps).toBeLessThan(0.6 * plain.steps);
    const { accepted_prediction_tokens: accepted, rejected_prediction_tokens: rejected } = draftsOf(
      drafted.answer,
    );
    expect(accepted).toBeGreaterThan(5);
    expect(rejected).toBeLessThan(0.1 * accepted);
  });

  it('of other weights changes no token', async () => {
    for (const fields of [{}, { n: 3 }, { temperature: 0 }, { top_k: 5 }]) {
      const plain = await ask({ ...fields, speculation: false });
      const drafted = await ask({ ...fields, speculation: OTHER });
      expect(texts(drafted)).toEqual(texts(plain));
      expect(draftsOf(drafted).rejected_prediction_tokens).toBeGreaterThan(0);
    }
  });

  it('follows sequences that start, end and are preempted together', async () => {
    const small = { path: EXACT_MODEL, contextSize: 128, kvTokens: 192, maxSequences: 6 };
    await using crowded = await createRuntime({ threads: 1, model: small, prefixCache: false });
    const run = (speculation: Fields['speculation']) =>
      Promise.all(
        Array.from({ length: 12 }, async (_, seed) => {
          const messages = [
            { role: 'user' as const, content: `Story ${seed}: a bear `.repeat(1 + (seed % 3)) },
          ];
          const length = 10 + ((7 * seed) % 40);
          const request = {
            messages,
            seed,
            max_tokens: length,
            ignore_eos: true,
            speculation,
            stream: false as const,
          };
          return texts(await crowded.createCompletion(request))[0];
        }),
      );
    const plain = await run(false);
    expect(await run(ITSELF)).toEqual(plain);
    expect(crowded.stats().acceptedTokens).toBeGreaterThan(50);
  });

  it('streams, and drafts behind a prediction that ends', async () => {
    const plain = await ask({ speculation: false });
    const content = texts(plain)[0]!.slice(0, 20);
    const drafted = await ask({ speculation: ITSELF, prediction: { type: 'content', content } });
    expect(texts(drafted)).toEqual(texts(plain));
    const parts: string[] = [];
    const messages = [{ role: 'user' as const, content: 'Once upon a time there was a bear.' }];
    const request = { messages, seed: 5, max_tokens: 40, speculation: ITSELF, stream: true as const };
    for await (const chunk of await runtime.createCompletion(request))
      parts.push(chunk.choices[0]?.delta.content ?? '');
    expect(parts.join('')).toBe(texts(plain)[0]);
  });

  it('is named by an alias, listed with its memory, and leaves with the model', async () => {
    await using other = await createRuntime({
      threads: 1,
      model: EXACT_MODEL,
      models: { small: { path: OTHER_MODEL, kvTokens: 512, contextSize: 256 } },
      speculation: { method: 'draft', model: 'small' },
    });
    await other.createCompletion({ messages: [{ role: 'user', content: 'Hello' }], max_tokens: 8 });
    const [model, draft] = other.loaded();
    expect(draft).toMatchObject({ path: OTHER_MODEL, state: 'ready', requests: 0 });
    expect(draft!.memory!.cache).toBeLessThan(model!.memory!.cache);
    expect(draft!.memory!.total).toBeGreaterThan(draft!.memory!.cache);
    await other.unload(EXACT_MODEL);
    await vi.waitFor(() => expect([...other.loaded()]).toEqual([]));
    const again = await other.createCompletion({
      messages: [{ role: 'user', content: 'Hello' }],
      min_tokens: 8,
      max_tokens: 8,
    });
    expect(again.usage.completion_tokens).toBe(8);
  });

  it.each<[string, unknown, string, string]>([
    [
      'another vocabulary',
      { method: 'draft', model: EMBEDDED },
      'INVALID_REQUEST',
      'speculation.model: expected a model with the vocabulary',
    ],
    [
      'no file',
      { method: 'draft', model: 'nowhere.gguf' },
      'MODEL_NOT_FOUND',
      'speculation.model: no such file',
    ],
    [
      'no model',
      { method: 'draft' },
      'INVALID_REQUEST',
      'speculation.model: expected a model with method draft',
    ],
    [
      'a model for matches',
      { method: 'ngram', model: EXACT_MODEL },
      'INVALID_REQUEST',
      'speculation.model: expected no value with method ngram',
    ],
    ['a number', { method: 'draft', model: 3 }, 'INVALID_REQUEST', 'speculation.model: expected'],
  ])('is refused with %s', async (_, speculation, code, message) => {
    const asked = ask({ speculation: speculation as Fields['speculation'] });
    await expect(asked).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
  });

  it('is an option of the runtime, also by its names in vLLM', async () => {
    const options = { threads: 1, model: EXACT_MODEL };
    for (const given of [
      { speculation: ITSELF },
      { speculative_config: { model: EXACT_MODEL, num_speculative_tokens: 4 } },
      { speculative_config: { method: 'draft_model', model: EXACT_MODEL } },
    ] as const) {
      await using other = await createRuntime({ ...options, ...given });
      const messages = [{ role: 'user' as const, content: 'Once upon a time' }];
      await other.createCompletion({ messages, seed: 5, max_tokens: 30, ignore_eos: true });
      expect(other.stats().acceptedTokens).toBeGreaterThan(5);
    }
    for (const [given, message] of [
      [{ speculation: { method: 'draft' } }, 'speculation.model: expected a model with method draft'],
      [
        { speculative_config: { num_speculative_tokens: 4 } },
        'speculative_config: expected an object with a method or a model',
      ],
      [
        { speculative_config: { method: 'ngram', model: 'x' } },
        'speculative_config.model: expected no value with method ngram',
      ],
    ] as const)
      await expect(createRuntime(given as object)).rejects.toThrow(message);
  });
});
