/** Forced tokens are those with which the engine's own tokenizer writes the whole text, for every vocabulary of its sources. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadAddon, openLibraries } from '../../src/engine/native/index.ts';
import { createRuntime, type Runtime } from '../../src/index.ts';
import { compileConstraint, readVocabulary, type Vocabulary } from '../../src/structured/index.ts';
import { testing } from '../addon/testing-addon.ts';
import { engineSources } from '../engine-sources.ts';
import { randomNumbers } from '../fakes/random-numbers.ts';

const sources = engineSources();
const folder = sources === null ? null : path.join(sources, 'models');
/** The tokenizer of an embedder that folds spaces: hardly any text comes back as it was, so there is nothing to compare with. */
const FOLDS_SPACES = /nomic-bert-moe/;
const files =
  folder === null
    ? []
    : fs.readdirSync(folder).filter((name) => name.endsWith('.gguf') && !FOLDS_SPACES.test(name));
/** Its words inside of a text differ from those at the beginning: nothing is forced. */
const WITHOUT_FORCED = /bert-bge/;

const PIECES = [
  '{"name": "get_weather", "arguments": {"city": "',
  '"}}\n</tool_call>',
  '<tool_call>\n{"name": "',
  '<function=search>\n<parameter=query>\n',
  '  "temperature":  -12.50,\n',
  'SELECT * FROM users WHERE id = 123456;',
  "it's what they'll've said",
  '日本語のテキスト',
  'naïve café ß',
  '👩‍👩‍👧 🎉',
  '\n\n\n',
  '     ',
  '\t\tif (x) {',
  'The answer is: ',
  '0123456789',
  'camelCaseHTTPServer',
  '<|im_end|>',
  '</think>',
  ' ',
  'a',
];

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');

/** The tokens of a text inside of a longer one: behind a tab, which joins nothing, where the tokenizer puts a space in front of texts. */
function wholeSplit(tokenizer: Parameters<typeof testing.splitText>[0], vocabulary: Vocabulary) {
  const textOf = (ids: Iterable<number>) =>
    Buffer.concat([...ids].map((id) => vocabulary.bytes(id))).toString();
  const plain = testing.splitText(tokenizer, 'x');
  const lead = plain !== null && textOf(plain) === 'x' ? '' : '\t';
  const before = testing.splitText(tokenizer, lead)?.length ?? 0;
  return (text: string): number[] | null => {
    const ids = testing.splitText(tokenizer, lead + text)?.subarray(before);
    return ids && textOf(ids) === text ? [...ids] : null;
  };
}

describe('forced tokens', () => {
  it.skipIf(files.length === 0).each(files)('of %s', { timeout: 240_000 }, async (name) => {
    const file = path.join(folder!, name);
    const vocabulary = await readVocabulary(file);
    if (WITHOUT_FORCED.test(name)) {
      const matcher = (await compileConstraint({ choice: ['hello'] }, vocabulary)).createMatcher();
      return expect(matcher.forcedTokens()).toHaveLength(0);
    }
    await openLibraries('auto');
    const split = wholeSplit(await loadAddon().openTokenizer(file), vocabulary);
    const numbers = randomNumbers(7);
    const random = (below: number): number => Math.floor(numbers() * below);
    const some = (most: number): string =>
      Array.from({ length: 1 + random(most) }, () => PIECES[random(PIECES.length)]!).join('');
    let forcedBytes = 0;
    let allBytes = 0;
    for (let round = 0; round < 25; round++) {
      const [free, forced] = [some(2), some(3)];
      const regex = `(${escaped(free)}|zzz)${escaped(forced)}[^]*`;
      const constraint = await compileConstraint({ regex }, vocabulary);
      for (const rest of [some(2), 'x', ' x', '1', '"', '\n', '.', 'é', some(1)]) {
        const tokens = split(free + forced + rest);
        if (tokens === null) continue;
        const matcher = constraint.createMatcher();
        let bytes = 0;
        let at = 0;
        while (bytes < Buffer.byteLength(free)) {
          bytes += vocabulary.bytes(tokens[at]!).length;
          expect(matcher.accept(tokens[at]!)).toBe(true);
          at += 1;
        }
        const got = [...matcher.forcedTokens()];
        expect(got, JSON.stringify([free, forced, rest])).toEqual(tokens.slice(at, at + got.length));
        allBytes += Math.max(0, Buffer.byteLength(free + forced) - bytes);
        forcedBytes += got.reduce((sum, id) => sum + vocabulary.bytes(id).length, 0);
      }
    }
    expect(forcedBytes, `${forcedBytes} of ${allBytes} bytes`).toBeGreaterThan(allBytes / 2);
  });
});

describe('calls of tools on the embedded model', () => {
  const tool = (strict: boolean) => ({
    type: 'function' as const,
    function: {
      name: 'get_weather',
      description: 'Weather of a city',
      strict,
      parameters: {
        type: 'object',
        properties: { city: { type: 'string' } },
        required: ['city'],
        additionalProperties: false,
      },
    },
  });
  const ask = async (runtime: Runtime, strict: boolean, fields: object) => {
    const { choices } = await runtime.createCompletion({
      messages: [{ role: 'user', content: 'What is the weather in Paris?' }],
      temperature: 0,
      max_tokens: 200,
      return_token_ids: true,
      tools: [tool(strict)],
      ...fields,
    });
    return choices[0]!;
  };

  it('have the same tokens whether they are forced or not', async () => {
    const runtime = await createRuntime({ model: path.resolve('models/onpolicy-tiny.gguf') });
    try {
      const named = { type: 'function' as const, function: { name: 'get_weather' } };
      for (const [tool_choice, strict] of [
        ['required', false],
        ['required', true],
        ['auto', true],
        [named, false],
      ] as const) {
        const forced = await ask(runtime, strict, { tool_choice });
        const sampled = await ask(runtime, strict, { tool_choice, logprobs: true });
        expect(forced.token_ids).toEqual(sampled.token_ids);
        expect(forced.message.content).toBeNull();
        expect(forced.message.tool_calls).toMatchObject([
          { function: { name: 'get_weather', arguments: expect.stringMatching(/"city": ?"Paris"/) } },
        ]);
      }
    } finally {
      await runtime.close();
    }
  });
});
