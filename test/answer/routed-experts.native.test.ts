/** `return_routed_experts`: which experts the tokens of a prompt and of its answers took, as the engine computes all of them at once. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EMBEDDED_MODEL } from '../../src/models/named-models.ts';
import { type ChatCompletion, routedExpertIds } from '../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { architectureFiles } from '../architectures/files.ts';
import { engineExperts } from '../fakes/engine-scores.ts';

const names = ['gpt-oss', 'qwen35moe'];
const files = architectureFiles(names);
const ask = {
  messages: [{ role: 'user' as const, content: 'Tell me of experts.' }],
  n: 3,
  max_tokens: 12,
  temperature: 1,
  seed: 3,
  ignore_eos: true,
  return_token_ids: true,
  return_routed_experts: true,
};

type Choice = Pick<ChatCompletion['choices'][number], 'routed_experts'> & {
  readonly token_ids?: number[] | null;
};

/** The experts of a choice; -1: unknown. */
function idsOf({ routed_experts }: Choice): number[] {
  return Array.from(routedExpertIds(routed_experts!), (id) => (id === 0xffff ? -1 : id));
}

describe.each(names)('%s', (name) => {
  let runtime: Runtime;
  beforeAll(async () => {
    runtime = await createRuntime({
      model: files[name]!,
      threads: 1,
      contextSize: 256,
      maxSequences: 4,
      gpu: false,
    });
  });
  afterAll(() => runtime.close());

  /** Checks a choice; returns how many of its tokens are known. */
  async function check(choice: Choice, prompt: readonly number[], known: number): Promise<void> {
    const tokens = [...prompt, ...choice.token_ids!];
    const { layers, used } = choice.routed_experts!;
    const width = layers * used;
    const given = idsOf(choice);
    const expected = await engineExperts(files[name]!, tokens);
    expect(given.length).toBe(tokens.length * width);
    const firstLayers = (token: number, ids: ArrayLike<number>) =>
      Array.from(ids).slice(token * width, (token + 1) * width - used);
    for (const token of tokens.keys()) {
      const isKnown = token >= known && token < tokens.length - 1;
      const of = isKnown ? firstLayers(token, expected) : Array(width - used).fill(-1);
      expect(firstLayers(token, given), `token ${token}`).toEqual(of);
      // In the last layer, only tokens with sampled rows have experts.
      if (isKnown && token >= prompt.length - 1)
        expect(given.slice((token + 1) * width - used, (token + 1) * width)).toEqual(
          Array.from(expected).slice((token + 1) * width - used, (token + 1) * width),
        );
    }
  }

  it('all choices have those of the prompt and their own', async () => {
    const { choices, prompt_token_ids } = await runtime.createCompletion(ask);
    expect(choices).toHaveLength(3);
    for (const choice of choices) await check(choice, prompt_token_ids!, 0);
  });

  it('what the prefix cache has is not known', async () => {
    const { choices, prompt_token_ids, usage } = await runtime.createCompletion({ ...ask, n: 1, seed: 4 });
    const cached = usage.prompt_tokens_details!.cached_tokens;
    expect(cached > 0).toBe(name === 'gpt-oss'); // the other has no checkpoint of so short a prompt
    await check(choices[0]!, prompt_token_ids!, cached);
  });

  it('a stream has the same, in the last chunk of a choice', async () => {
    const whole = await runtime.createCompletion({ ...ask, cache_salt: 'whole' });
    const ends: Choice[] = [];
    for await (const { choices } of await runtime.createCompletion({
      ...ask,
      cache_salt: 'parts',
      stream: true,
    }))
      for (const choice of choices) {
        expect('routed_experts' in choice).toBe(choice.finish_reason !== null);
        if (choice.finish_reason !== null) ends[choice.index] = choice;
      }
    expect(ends.map(idsOf)).toEqual(whole.choices.map(idsOf));
  });

  it('drafts and other requests beside it change nothing', async () => {
    const asked = { ...ask, n: 1, speculation: { method: 'ngram' as const }, max_tokens: 40, temperature: 0 };
    const [{ choices, prompt_token_ids }] = await Promise.all([
      runtime.createCompletion({ ...asked, cache_salt: 'drafts' }),
      runtime.createCompletion({ ...ask, return_routed_experts: false, cache_salt: 'beside' }),
    ]);
    await check(choices[0]!, prompt_token_ids!, 0);
    const { choices: others } = await runtime.createCompletion({ ...ask, return_routed_experts: false });
    expect('routed_experts' in others[0]!).toBe(false);
  });
});

it('a model without experts refuses', async () => {
  await using runtime = await createRuntime({ model: EMBEDDED_MODEL, threads: 1, gpu: false });
  await expect(runtime.createCompletion(ask)).rejects.toMatchObject({
    code: 'UNSUPPORTED',
    param: 'return_routed_experts',
    message: expect.stringContaining('this model has no experts'),
  });
});
