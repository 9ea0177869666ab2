/** `max_tokens` of `any_text` in structural tags: every mask beside the definition of the limit, applied to the whole text so far. */
import { describe, expect, it } from 'vitest';
import { compileConstraint } from '../../src/structured/index.ts';
import { isAllowed, smallVocabulary } from './vocabularies.ts';

const vocabulary = smallVocabulary();
const eos = vocabulary.eosTokenIds[0]!;
const mask = new Int32Array(Math.ceil(vocabulary.size / 32));
const BEGIN = Buffer.from('b{"');
const END = Buffer.from('"}a');

type Format = Readonly<Record<string, unknown>>;
const tag = (content: Format, begin = BEGIN.toString(), end = END.toString()): Format => ({
  type: 'tag',
  begin,
  content,
  end,
});
const limited = (max_tokens: number | null, more: Format = {}): Format => ({
  type: 'any_text',
  max_tokens,
  ...more,
});

async function compile(format: Format) {
  return await compileConstraint({ structural_tag: { type: 'structural_tag', format } }, vocabulary);
}

/** Returns true if bytes are UTF-8, of which the last character may be cut if `cut`. */
function isText(bytes: Buffer, cut: boolean): boolean {
  try {
    new TextDecoder('utf8', { fatal: true }).decode(bytes, { stream: cut });
    return true;
  } catch {
    return false;
  }
}

/** Returns true if the text of `pieces` begins or, with `whole`, is one of a tag whose free text has at most `limit` tokens. */
function fits(pieces: readonly Buffer[], limit: number, whole: boolean): boolean {
  const text = Buffer.concat(pieces);
  if (text.length < BEGIN.length) return !whole && BEGIN.subarray(0, text.length).equals(text);
  if (!text.subarray(0, BEGIN.length).equals(BEGIN)) return false;
  const from = BEGIN.length;
  const at = text.indexOf(END, from);
  if (at >= 0 && at + END.length < text.length) return false;
  /** Returns true if the free text may end at `end`, or go on from there if it is `open`. */
  const mayEnd = (end: number, open: boolean) => {
    if (!isText(text.subarray(from, end), open) || (limit === 0 && end > from)) return false;
    let begin = 0;
    let count = 0;
    for (const piece of pieces) {
      const isInside = begin >= from && begin < end;
      // A text without tokens left goes on only inside a character.
      if (isInside && count >= limit && isText(text.subarray(from, begin), false)) return false;
      count += isInside ? 1 : 0;
      begin += piece.length;
    }
    return true;
  };
  if (at >= 0) return mayEnd(at, false);
  if (whole) return false;
  if (mayEnd(text.length, true)) return true;
  for (let length = 0; length < END.length; length++) {
    const end = text.length - length;
    if (end >= from && END.subarray(0, length).equals(text.subarray(end)) && mayEnd(end, false)) return true;
  }
  return false;
}

/** Returns a function that draws numbers from 0 to 1. */
function draws(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

describe('max_tokens of any_text', () => {
  it.each([0, 1, 2, 4])('%i: every token is allowed if the definition says so', async (limit) => {
    const constraint = await compile(tag(limited(limit)));
    const draw = draws(limit + 1);
    let checked = 0;
    for (let walk = 0; walk < 6; walk++) {
      const matcher = constraint.createMatcher();
      const pieces: Buffer[] = [];
      for (let step = 0; step < 14; step++) {
        matcher.fillMask(mask);
        const allowed: number[] = [];
        for (let token = 0; token < vocabulary.size - 2; token++) {
          const expected = fits([...pieces, Buffer.from(vocabulary.bytes(token))], limit, false);
          const shown = () => `${JSON.stringify(pieces.map(String))} and token ${token}`;
          if (isAllowed(mask, token) !== expected) throw new Error(`${shown()} should be ${expected}`);
          if (expected) allowed.push(token);
          checked++;
        }
        const complete = fits(pieces, limit, true);
        expect(matcher.isComplete()).toBe(complete);
        expect(isAllowed(mask, eos)).toBe(complete);
        if (complete) break;
        // Half of the steps prefer the bytes of the tag and of characters, which random tokens rarely are.
        const likely = allowed.filter(
          (token) => token < 256 && '{"}ab\xe4\xb8\xad'.includes(String.fromCharCode(token)),
        );
        const from = likely.length > 0 && draw() < 0.5 ? likely : allowed;
        const token = from[Math.floor(draw() * from.length)]!;
        expect(matcher.accept(token)).toBe(true);
        pieces.push(Buffer.from(vocabulary.bytes(token)));
      }
    }
    expect(checked).toBeGreaterThan(5_000);
  });

  /** Feeds texts, each as one token of the vocabulary. Returns true if all were allowed and the end is. */
  async function takes(format: Format, texts: readonly string[]): Promise<boolean> {
    const matcher = (await compile(format)).createMatcher();
    for (const text of texts) {
      const [token, ...more] = vocabulary.tokenize(text);
      expect(more, text).toEqual([]);
      matcher.fillMask(mask);
      expect(matcher.accept(token!)).toBe(isAllowed(mask, token!));
      if (!isAllowed(mask, token!)) return false;
    }
    return matcher.isComplete();
  }
  const sequence = (...elements: Format[]): Format => ({ type: 'sequence', elements });
  const text = (value: string): Format => ({ type: 'const_string', value });

  it.each<[string, Format, string[], boolean]>([
    ['a token of several characters counts once', tag(limited(1), '{', '}'), ['{', 'brown', '}'], true],
    ['one more', tag(limited(1), '{', '}'), ['{', 'brown', 'fox', '}'], false],
    [
      'a token that begins before the text is not counted',
      tag(limited(1), '[', ']'),
      ['[[', 'fox', ']'],
      true,
    ],
    ['a token that reaches beyond it is', tag(limited(1), '[', ']'), ['[', 'fox', ']]'], false],
    ['null is no limit', tag(limited(null), '{', '}'), ['{', 'the', 'quick', 'brown', '}'], true],
    ['the largest number', tag(limited(2 ** 31 - 1), '{', '}'), ['{', 'the', 'quick', '}'], true],
    ['characters end it first', tag(limited(3, { max_chars: 4 }), '{', '}'), ['{', 'the', 'ab', '}'], false],
    ['tokens end it first', tag(limited(1, { max_chars: 4 }), '{', '}'), ['{', 'a', 'b', '}'], false],
    ['both are kept', tag(limited(2, { max_chars: 4 }), '{', '}'), ['{', 'the', 'b', '}'], true],
    [
      'each text has its own',
      sequence(tag(limited(1), '{', '}'), tag(limited(2), '[', ']')),
      ['{', 'fox', '}', '[', 'the', 'fox', ']'],
      true,
    ],
    [
      'in the other order',
      sequence(tag(limited(1), '{', '}'), tag(limited(2), '[', ']')),
      ['{', 'the', 'fox', '}', '[', 'fox', ']'],
      false,
    ],
    [
      'each repetition too',
      { type: 'star', content: tag(limited(1), '{', '}') },
      ['{', 'fox', '}', '{', 'the', '}'],
      true,
    ],
    [
      'two texts in a row add up',
      sequence(limited(1), limited(2), text('}')),
      ['the', 'quick', 'fox', '}'],
      true,
    ],
    ['and no more', sequence(limited(1), limited(2), text('}')), ['the', 'quick', 'fox', 'ab', '}'], false],
    ['at the end of everything', sequence(text('{'), limited(2)), ['{', 'the', 'fox'], true],
    ['beyond that end', sequence(text('{'), limited(2)), ['{', 'the', 'quick', 'fox'], false],
    ['beside a choice', { type: 'or', elements: [limited(1), text('the fox')] }, ['the', ' ', 'fox'], true],
    ['of excluded words', tag(limited(2, { excludes: ['fox'] }), '{', '}'), ['{', 'fox', '}'], false],
  ])('%s', async (_, format, texts, expected) => {
    expect(await takes(format, texts)).toBe(expected);
  });

  it('is kept by copies, and given back by a step back', async () => {
    const matcher = (await compile(tag(limited(2), '{', '}'))).createMatcher();
    const token = (value: string) => vocabulary.tokenize(value)[0]!;
    expect([token('{'), token('fox')].map((one) => matcher.accept(one))).toEqual([true, true]);
    const copy = matcher.clone();
    expect([token('the'), token('fox')].map((one) => matcher.accept(one))).toEqual([true, false]);
    matcher.rollback(1);
    expect([token('quick'), token('fox'), token('}')].map((one) => matcher.accept(one))).toEqual([
      true,
      false,
      true,
    ]);
    expect([token('ab'), token('ab')].map((one) => copy.accept(one))).toEqual([true, false]);
  });

  it('leaves only the end where nothing follows', async () => {
    const matcher = (await compile(sequence(text('{'), limited(1)))).createMatcher();
    for (const one of ['{', 'fox']) matcher.accept(vocabulary.tokenize(one)[0]!);
    matcher.fillMask(mask);
    expect(
      Array.from({ length: vocabulary.size }, (_, token) => token).filter((token) => isAllowed(mask, token)),
    ).toEqual([eos]);
  });

  it.each<[string, string, unknown]>([
    ['max_tokens', 'any_text', -1],
    ['max_tokens', 'any_text', 1.5],
    ['max_tokens', 'any_text', 2 ** 31],
    ['max_tokens', 'any_text', '5'],
    ['max_chars', 'any_text', true],
    ['max_tokens', 'any_tokens', 2 ** 31],
  ])('refuses %s of %s: %j', async (field, type, value) => {
    const error = compile(tag({ type, [field]: value }));
    await expect(error).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    await expect(error).rejects.toThrow(`#/format/content/${field}`);
    await expect(error).rejects.toThrow('must be an integer from 0 to 2147483647');
  });
});
