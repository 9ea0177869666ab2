/** How answers end: every rule for stops, ends and lengths on answers that are known. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ChatCompletion } from '../../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { PARIS, PARIS_ANSWER } from '../asking.ts';
import { ask, type Fields, forced, onlyThese, specialId } from './model.ts';

let runtime: Runtime;
let eos = 0;
let secondEnd = 0;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1 });
  eos = await specialId(runtime, '<|im_end|>');
  secondEnd = await specialId(runtime, '<|endoftext|>');
});
afterAll(() => runtime.close());

/** The answer that says `text`. */
async function say(text: string, fields: Fields = {}): Promise<ChatCompletion['choices'][number]> {
  const answer = await runtime.createCompletion({ ...(await forced(runtime, text, fields)), stream: false });
  return answer.choices[0]!;
}

/** The answer of just these tokens, as far as they are let. */
async function sayIds(ids: readonly number[], fields: Fields): Promise<ChatCompletion['choices'][number]> {
  const logits_processors = [onlyThese(ids, eos)];
  return (await ask(runtime, 'Say it.', { logits_processors, return_token_ids: true, ...fields }))
    .choices[0]!;
}

/** True if the last tokens are up to four tokens so many times in a row. */
function isLoop(ids: readonly number[], times: number): boolean {
  return [1, 2, 3, 4].some((size) => {
    const last = ids.slice(-size * times);
    return last.length === size * times && last.every((id, i) => id === last[i % size]);
  });
}

describe('stopping', () => {
  it.each<[string, Fields, object]>([
    [
      'max_completion_tokens wins over max_tokens',
      { max_completion_tokens: 2, max_tokens: 5 },
      { token_ids: { length: 2 }, finish_reason: 'length', stop_reason: null },
    ],
    [
      'a single stop string',
      { stop: ' of' },
      { message: { content: 'The capital' }, finish_reason: 'stop', stop_reason: ' of' },
    ],
    [
      'of two, the one that is first in the text',
      { stop: ['France', 'capital'] },
      { message: { content: 'The ' }, stop_reason: 'capital' },
    ],
    ['at one place, the first of the list', { stop: ['capital of', 'capital'] }, { stop_reason: 'capital' }],
    [
      'included',
      { stop: ['capital'], include_stop_str_in_output: true },
      { message: { content: 'The capital' } },
    ],
    [
      'min_tokens lets one pass that ends in the first tokens',
      { stop: ['capital'], min_tokens: 5 },
      { message: { content: PARIS_ANSWER }, stop_reason: null },
    ],
    [
      'and not one that ends later',
      { stop: ['Paris'], min_tokens: 3 },
      { message: { content: 'The capital of France is ' }, stop_reason: 'Paris' },
    ],
    [
      'text of a special token never matches',
      { stop: ['<|im_end|>'] },
      { message: { content: PARIS_ANSWER }, stop_reason: null },
    ],
    ['the end of sequence has no reason', {}, { finish_reason: 'stop', stop_reason: null }],
  ])('%s', async (_, fields, expected) => {
    const [choice] = (await ask(runtime, PARIS, { return_token_ids: true, ...fields })).choices;
    const { token_ids, ...rest } = expected as { token_ids?: { length: number } };
    expect(choice).toMatchObject(rest);
    if (token_ids) expect(choice!.token_ids).toHaveLength(token_ids.length);
  });

  it('ids, log-probabilities and usage keep what the text loses to a stop string', async () => {
    const answer = await ask(runtime, PARIS, {
      stop: ['capital of'],
      return_token_ids: true,
      logprobs: true,
    });
    const [choice] = answer.choices;
    expect(choice!.message.content).toBe('The ');
    expect(await runtime.detokenize(choice!.token_ids!)).toMatch(/^The capital of/);
    expect(answer.usage.completion_tokens).toBe(choice!.token_ids!.length);
    expect(choice!.logprobs!.content).toHaveLength(choice!.token_ids!.length);
  });

  it('a stop string wins over the length at the same token', async () => {
    const { token_ids } = await sayIds(await runtime.tokenize('ab END'), {});
    const fields = { stop: ['END'], max_tokens: token_ids!.length - 1 };
    expect(await say('ab END', fields)).toMatchObject({ finish_reason: 'stop', stop_reason: 'END' });
  });

  it('ends: the primary one has no reason, another its id; ignore_eos reads over both, stop ids do not', async () => {
    const [a, b] = [await runtime.tokenize('a'), await runtime.tokenize('b')] as [[number], [number]];
    expect(await sayIds([...a, eos], {})).toMatchObject({ stop_reason: null, message: { content: 'a' } });
    expect(await sayIds([...a, secondEnd], {})).toMatchObject({
      stop_reason: secondEnd,
      message: { content: 'a' },
    });
    const over = await sayIds([...a, eos, secondEnd, ...b], { ignore_eos: true, max_tokens: 4 });
    expect(over).toMatchObject({ finish_reason: 'length', message: { content: 'ab' } });
    expect(over.token_ids).toHaveLength(4);
    expect(await sayIds([...a, eos, ...b], { ignore_eos: true, stop_token_ids: [eos] })).toMatchObject({
      stop_reason: eos,
    });
    const last = await sayIds([...a, eos], { max_tokens: 2 });
    expect(last).toMatchObject({ finish_reason: 'stop', stop_reason: null });
    const shown = { include_stop_str_in_output: true, skip_special_tokens: false };
    expect((await sayIds([...a, eos], shown)).message.content).toBe('a<|im_end|>');
    expect((await sayIds([...a, eos], { include_stop_str_in_output: true })).message.content).toBe('a');
  });

  it('min_tokens masks every end and stop id until then, also with ignore_eos', async () => {
    for (const ignore_eos of [false, true]) {
      const { choices } = await ask(runtime, PARIS, {
        min_tokens: 25,
        max_tokens: 40,
        ignore_eos,
        return_token_ids: true,
        logit_bias: { [eos]: 100 },
      });
      expect(choices[0]!.token_ids!.slice(0, 25)).not.toContain(eos);
      expect(choices[0]!.token_ids![25]).toBe(eos);
    }
  });

  it('an ordinary stop id is no text unless it is included', async () => {
    const [comma] = await runtime.tokenize(',');
    expect(await say('a,b', { stop_token_ids: [comma!] })).toMatchObject({
      message: { content: 'a' },
      stop_reason: comma,
    });
    const kept = { stop_token_ids: [comma!], include_stop_str_in_output: true };
    expect(await say('a,b', kept)).toMatchObject({ message: { content: 'a,' } });
  });

  it('repetition_detection ends a loop: alone, with drafts, streamed, and as a row of a batch', async () => {
    const ids = await runtime.tokenize('So: ha ha ha ha ha ha ha ha');
    const loop = { max_pattern_size: 4, min_pattern_size: 1, min_count: 3 };
    const whole = await sayIds(ids, {});
    expect(whole).toMatchObject({ finish_reason: 'stop', stop_reason: null });
    const ended = await sayIds(ids, { repetition_detection: loop });
    expect(ended).toMatchObject({ finish_reason: 'length', stop_reason: 'repetition_detected' });
    const { token_ids: kept } = ended;
    expect(kept).toEqual(whole.token_ids!.slice(0, kept!.length));
    expect(isLoop(kept!, 3)).toBe(true);
    expect(isLoop(kept!.slice(0, -1), 3)).toBe(false);
    const asked = {
      messages: [{ role: 'user' as const, content: 'Say it.' }],
      temperature: 0,
      structured_outputs: { regex: 'So: (ha ){20}' },
      repetition_detection: loop,
    };
    const drafted = await runtime.createCompletion({
      ...asked,
      speculation: { method: 'ngram' },
      return_token_ids: true,
    });
    const alone = await runtime.createCompletion({ ...asked, speculation: false, return_token_ids: true });
    expect(alone.choices[0]).toMatchObject({ finish_reason: 'length', stop_reason: 'repetition_detected' });
    expect(isLoop(alone.choices[0]!.token_ids!, 3)).toBe(true);
    expect(drafted.choices).toEqual(alone.choices);
    const ends = [];
    for await (const { choices } of await runtime.createCompletion({ ...asked, stream: true }))
      if (choices[0]?.finish_reason) ends.push([choices[0].finish_reason, choices[0].stop_reason]);
    expect(ends).toEqual([['length', 'repetition_detected']]);
    const { choices } = await runtime.createTextCompletion({
      prompt: 'Say it.',
      max_tokens: 60,
      temperature: 0,
      structured_outputs: asked.structured_outputs,
      repetition_detection: loop,
    });
    expect(choices[0]).toMatchObject({ finish_reason: 'length', stop_reason: 'repetition_detected' });
  });

  it('an answer of nothing is an empty text', async () => {
    expect(await say('')).toMatchObject({ message: { content: '', tool_calls: [] }, finish_reason: 'stop' });
  });

  it('half a character at the end is U+FFFD, and its bytes are true', async () => {
    const ids = await runtime.tokenize('🦜');
    expect(ids.length).toBeGreaterThan(1);
    const half = await sayIds(ids.slice(0, -1), { max_tokens: ids.length - 1, logprobs: true });
    expect(half.message.content).toBe('\ufffd');
    const bytes = (await sayIds(ids, { logprobs: true }))
      .logprobs!.content.slice(0, -1)
      .flatMap((entry) => entry.bytes);
    expect(Buffer.from(bytes).toString()).toBe('🦜');
  });
});
