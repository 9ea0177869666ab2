/** Vocabularies for tests: a small one made here, and real ones out of the installed llama.cpp sources. */
import fs from 'node:fs';
import path from 'node:path';
import { createVocabulary, readVocabulary, type Vocabulary } from '../../src/structured/index.ts';
import { engineSources } from '../engine-sources.ts';

const PIECES =
  '{" "} "} {} [] [[ ]] ], }, "," ", " ":" ": " ":["  "name" "age" true false null tr ue fal se nul 10 12 123 00 0. .5 1.5 -1 e5 ' +
  'the quick brown fox hello world abc ab bc abcd cab aa bb foo bar baz qux ba fo oo é ü ß 中文 日本 😀 \\n \\" \\\\ \\u00 \\u12 ' +
  '"a" "b" "a": "b": a": b": "foo" "bar": {"a {"foo"';

/** All single bytes (token id = byte), then pieces that cross boundaries, then the end of sequence. */
export function smallVocabulary(): Vocabulary {
  const words = [...new Set(PIECES.split(' ').filter(Boolean))];
  const spaced = [
    '  ',
    '\n',
    '\n  ',
    '\n    ',
    ', "',
    ': "',
    ': {',
    ': [',
    '", "',
    ' "',
    ' {',
    ' [',
    ' 1',
    ' tr',
  ];
  const bytes = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte));
  const halves = [Uint8Array.of(0xe4, 0xb8), Uint8Array.of(0xad, 0x22), Uint8Array.of(0xf0, 0x9f)];
  const tokens = [...bytes, ...words, ...spaced, ...halves, '<end>', '<tool>'];
  return createVocabulary({
    tokens,
    eosTokenIds: [tokens.length - 2],
    specialTokenIds: [tokens.length - 2, tokens.length - 1],
  });
}

/** The vocabulary of a real model, or why there is none. */
export async function realVocabulary(name: 'llama-bpe' | 'qwen2' | 'gemma-4'): Promise<Vocabulary | string> {
  const folder = engineSources();
  if (folder === null) return "no real vocabulary: the engine's sources cannot be cloned";
  const file = path.join(folder, 'models', `ggml-vocab-${name}.gguf`);
  return fs.existsSync(file) ? readVocabulary(file) : `no real vocabulary: ${file} is missing`;
}

/** Feeds a text token by token, checking each mask bit. True when all was allowed and the end is allowed. */
export function accepts(
  matcher: ReturnType<
    Awaited<ReturnType<typeof import('../../src/structured/index.ts').compileConstraint>>['createMatcher']
  >,
  tokens: Iterable<number>,
  mask: Int32Array,
  eosTokenId: number,
): boolean {
  for (const token of tokens) {
    matcher.fillMask(mask);
    const allowed = isAllowed(mask, token);
    if (matcher.accept(token) !== allowed) throw new Error(`mask and accept disagree on token ${token}`);
    if (!allowed) return false;
  }
  matcher.fillMask(mask);
  if (isAllowed(mask, eosTokenId) !== matcher.isComplete()) throw new Error('mask and isComplete disagree');
  return matcher.isComplete();
}

/** Returns true if a mask allows a token. */
export function isAllowed(mask: Int32Array, token: number): boolean {
  return ((mask[token >> 5]! >>> (token & 31)) & 1) === 1;
}
