/** Samplers with a memory, mirostat, adaptive-p and DRY: it belongs to its sequence, whatever runs beside it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { STORY } from '../asking.ts';
import { ask, EXACT_MODEL, type Fields, PLAIN } from './model.ts';

const MIROSTAT: Fields = { mirostat: 2, mirostat_tau: 3, mirostat_eta: 0.6, temperature: 1.5 };
const CASES: readonly (readonly [string, Fields])[] = [
  ['mirostat 1', { ...MIROSTAT, mirostat: 1 }],
  ['mirostat 2', MIROSTAT],
  ['adaptive-p', { adaptive_target: 0.05, adaptive_decay: 0.7, temperature: 1.5 }],
  ['DRY', { dry_multiplier: 1.5, dry_allowed_length: 0, temperature: 1.5 }],
  ['XTC', { xtc_probability: 0.5, xtc_threshold: 0.001, temperature: 1.5 }],
];
const LONG = { max_tokens: 40, ignore_eos: true, return_token_ids: true, chat_template: PLAIN };
const OPTIONS = { model: EXACT_MODEL, threads: 1 };

let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime(OPTIONS);
});
afterAll(() => runtime.close());

async function tokensOf(fields: Fields, on = runtime): Promise<number[][]> {
  const { choices } = await ask(on, STORY, { ...LONG, ...fields });
  return choices.map(({ token_ids }) => token_ids!);
}

describe.each(CASES)('%s', (_, fields) => {
  it('draws for each of n choices as for one alone, with drafts and without', async () => {
    const together = await tokensOf({ ...fields, n: 3, seed: 5 });
    const drafted = await tokensOf({ ...fields, n: 3, seed: 5, speculation: 'auto' });
    expect(drafted).toEqual(together);
    for (const [i, tokens] of together.entries())
      expect(await tokensOf({ ...fields, seed: 5 + i })).toEqual([tokens]);
  });

  it('keeps its memory where a sequence is preempted', async () => {
    const wanted = await Promise.all([1, 2, 3, 4].map((seed) => tokensOf({ ...fields, seed })));
    await using small = await createRuntime({ ...OPTIONS, kvTokens: 160, contextSize: 120, maxSequences: 4 });
    const given = await Promise.all([1, 2, 3, 4].map((seed) => tokensOf({ ...fields, seed }, small)));
    expect(given).toEqual(wanted);
  });

  it('changes what is drawn', async () => {
    const { temperature } = fields;
    expect(await tokensOf({ ...fields, seed: 9 })).not.toEqual(await tokensOf({ temperature, seed: 9 }));
  });
});

it('text completions, messages and responses take them', async () => {
  const seen = async (own: { mirostat?: number; mirostat_tau?: number }): Promise<unknown[]> => {
    const common = { seed: 3, temperature: 1.5, stream: false, chat_template: PLAIN, ...own } as const;
    const { chat_template: _, ...ofText } = common;
    const text = await runtime.createTextCompletion({ prompt: 'Once', max_tokens: 20, ...ofText });
    const message = await runtime.createMessage({
      messages: [{ role: 'user', content: STORY }],
      max_tokens: 20,
      ...common,
    });
    const response = await runtime.createResponse({ input: 'Once', max_output_tokens: 20, ...common });
    return [text.choices[0]!.text, message.content, response.output.map((item) => ({ ...item, id: '' }))];
  };
  const [plain, sure] = [await seen({}), await seen({ mirostat: 2, mirostat_tau: 0.5 })];
  for (const [i, one] of plain.entries()) expect(one).not.toEqual(sure[i]);
});
