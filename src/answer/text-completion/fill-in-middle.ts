/** A text before and one after -> the tokens that ask a model for the text between them, if it has tokens for that. */
import { atField } from '../../common/index.ts';
import type { Tokenizer } from '../../engine/tokenizer/index.ts';
import { errorAt } from '../../errors.ts';

/** Ids of the tokens before the prefix, before the suffix, and before the text to fill in. */
type Markers = readonly [prefix: number, suffix: number, middle: number];

/** Texts of the markers, by family of models. The order is the same in all: prefix, suffix, middle. */
const FAMILIES: readonly (readonly [prefix: string, suffix: string, middle: string])[] = [
  ['<|fim_prefix|>', '<|fim_suffix|>', '<|fim_middle|>'],
  ['<fim_prefix>', '<fim_suffix>', '<fim_middle>'],
  ['<fim-prefix>', '<fim-suffix>', '<fim-middle>'],
  ['<｜fim▁begin｜>', '<｜fim▁hole｜>', '<｜fim▁end｜>'],
  ['<|code_prefix|>', '<|code_suffix|>', '<|code_middle|>'],
  [' <PRE>', ' <SUF>', ' <MID>'],
];

const known = new WeakMap<Tokenizer, Markers | null>();

/**
 * Returns the tokens of a fill-in-the-middle prompt. `added` are the tokens that the tokenizer puts before any text.
 * @throws OnpolicyError `UNSUPPORTED` for a model without the markers
 */
export async function fillInMiddle(
  tokenizer: Tokenizer,
  before: string,
  after: string,
  added: Int32Array,
): Promise<Int32Array> {
  const markers = markersOf(tokenizer);
  if (!markers)
    throw errorAt(
      'suffix',
      'UNSUPPORTED',
      'this model has no tokens to fill in the middle of a text; models of code mostly have them',
    );
  const plain = { addSpecial: false, parseSpecial: false };
  const [prefix, suffix] = await Promise.all([
    tokenizer.encode(before, plain),
    atField('suffix', () => tokenizer.encode(after, plain)),
  ]);
  return Int32Array.from([...added, markers[0], ...prefix, markers[1], ...suffix, markers[2]]);
}

/** Returns the model's markers, or null if it has none. Searches the vocabulary once. */
function markersOf(tokenizer: Tokenizer): Markers | null {
  let markers = known.get(tokenizer);
  if (markers === undefined) {
    markers = findMarkers(tokenizer);
    known.set(tokenizer, markers);
  }
  return markers;
}

function findMarkers(tokenizer: Tokenizer): Markers | null {
  const wanted = new Map(FAMILIES.flat().map((text) => [Buffer.from(text).toString('latin1'), text]));
  const ids = new Map<string, number>();
  for (let id = 0; id < tokenizer.vocabSize; id++) {
    const bytes = tokenizer.bytesOf(id);
    if (bytes.length < LEAST_BYTES || bytes.length > MOST_BYTES) continue;
    const text = wanted.get(Buffer.from(bytes).toString('latin1'));
    if (text !== undefined && !ids.has(text)) ids.set(text, id);
  }
  for (const texts of FAMILIES) {
    const [prefix, suffix, middle] = texts.map((text) => ids.get(text));
    if (prefix !== undefined && suffix !== undefined && middle !== undefined) return [prefix, suffix, middle];
  }
  return null;
}

/** Bytes of the shortest and the longest marker text. */
const LEAST_BYTES = 6;
const MOST_BYTES = 24;
