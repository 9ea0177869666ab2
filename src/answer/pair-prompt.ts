/** A query and a document -> the tokens that a model scores. */
import { atField } from '../common/index.ts';
import type { Tokenizer } from '../engine/tokenizer/index.ts';
import { contextOverflow, errorAt } from '../errors.ts';
import type { EmbeddingModel } from '../models/index.ts';
import type { TextPair } from '../protocol/index.ts';

type EncodePair = (query: string, document: string) => Promise<Int32Array>;

/** Limits of the tokens of a pair. */
export type PairLimits = {
  readonly contextSize: number;
  /** As in the request: -1 cuts at the context size; null makes a longer pair an error. */
  readonly truncate: number | null;
};

/** Qwen3-Reranker's prompt, as published by its authors. */
export const JUDGE_TEMPLATE =
  '<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. ' +
  'Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n' +
  '<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n' +
  '<Query>: {query}\n<Document>: {document}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n';

/** Upper limit of the characters of one token. */
const LONGEST_TOKEN = 256;
const INSTRUCTION = /^<Instruct>: .*$/m;

/** Returns the encoder of pairs for a model with a head. */
export function pairEncoder(
  { tokenizer, head, name }: EmbeddingModel,
  instruction: string | null,
): EncodePair {
  if (head!.template !== '') return templateEncoder(head!.template, tokenizer, instruction);
  if (instruction !== null)
    throw errorAt('instruction', 'UNSUPPORTED', `the prompt of ${name} has no instruction`);
  const plain = { addSpecial: false, parseSpecial: false };
  const { before, between, after } = head!;
  let last: { readonly query: string; readonly ids: Promise<Int32Array> } | null = null; // the query is mostly the same for all documents
  return async (query, document) => {
    if (last?.query !== query) last = { query, ids: tokenizer.encode(query, plain) };
    const [first, second] = [await last.ids, await tokenizer.encode(document, plain)];
    return Int32Array.from([...before, ...first, ...between, ...second, ...after]);
  };
}

/** Returns the encoder for a template with `{query}` and `{document}`. `instruction` replaces the template's instruction line. */
export function templateEncoder(
  template: string,
  tokenizer: Tokenizer,
  instruction: string | null,
): EncodePair {
  if (instruction !== null && !INSTRUCTION.test(template))
    throw errorAt('instruction', 'UNSUPPORTED', 'the prompt of this model has no instruction');
  const told =
    instruction === null ? template : template.replace(INSTRUCTION, () => `<Instruct>: ${instruction}`);
  return async (query, document) => {
    const text = told.replace(/\{(query|document)\}/g, (_, name) => (name === 'query' ? query : document));
    return await tokenizer.encode(text, { addSpecial: false, parseSpecial: true });
  };
}

/** Returns the tokens of a pair, its document cut to `truncate` tokens. Fails with `CONTEXT_OVERFLOW`. */
export async function encodeWithin(
  encode: EncodePair,
  { query, document }: TextPair,
  { contextSize, truncate }: PairLimits,
): Promise<Int32Array> {
  const most = truncate === -1 ? contextSize : (truncate ?? Infinity);
  const whole = await atField(document.path, () => encode(query.content, document.content));
  const ids =
    whole.length <= most
      ? whole
      : await longestWithin((text) => encode(query.content, text), document.content, most);
  if (ids && ids.length <= contextSize) return ids;
  const { path } = ids ? document : query;
  throw contextOverflow(
    path,
    `expected at most ${Math.min(most, contextSize)} tokens with what stands around it, got ${whole.length}` +
      (truncate === null ? '; truncate_prompt_tokens: -1 cuts longer documents' : ''),
    { prompt_tokens: whole.length, max_model_len: contextSize },
  );
}

/** Returns the tokens of the longest beginning of a text that has at most `most` tokens. Returns null if the empty text has more. */
async function longestWithin(
  encode: (text: string) => Promise<Int32Array>,
  text: string,
  most: number,
): Promise<Int32Array | null> {
  const characters = Array.from(text.slice(0, LONGEST_TOKEN * most)); // whole code points
  let found: Int32Array | null = null;
  let [fits, tooLong] = [-1, characters.length + 1];
  while (tooLong - fits > 1) {
    const length: number = (fits + tooLong) >> 1;
    const ids: Int32Array = await encode(characters.slice(0, length).join(''));
    if (ids.length > most) tooLong = length;
    else [fits, found] = [length, ids];
  }
  return found;
}
