/** A model folder's tokenizer files -> a tokenizer. Encoding is that of @huggingface/transformers. */

import type { Tokenizer } from '../engine/tokenizer/index.ts';
import { messageOf } from '../errors.ts';
import type { ModelFolder } from './folder.ts';
import { invalid } from './model-errors.ts';
import { loadTransformers } from './packages.ts';
import { readTokens } from './vocabulary.ts';

type Encoder = (text: string, addSpecial: boolean) => number[];

/** Creates a folder's tokenizer. Fails with `MODEL_INVALID` if its files are of an unknown kind. */
export async function createTokenizer(model: ModelFolder, vocabSize: number): Promise<Tokenizer> {
  const { bytes, special } = readTokens(model.tokenizer, vocabSize);
  const encode = await createEncoder(model, true);
  let encodePlain: Promise<Encoder> | null = null;
  const idOf = (name: 'bos_token' | 'eos_token'): number => {
    const text = tokenText(model.tokenizerConfig[name]);
    return text === '' ? -1 : (findToken(model, text) ?? -1);
  };
  const decoder = new TextDecoder();
  const textOf = (id: number): string => (id < 0 ? '' : decoder.decode(bytes[id]));
  const ends = new Set(model.eosIds.filter((id) => id >= 0 && id < vocabSize));
  const eosId = idOf('eos_token') >= 0 ? idOf('eos_token') : (model.eosIds[0] ?? -1);
  if (eosId >= 0) ends.add(eosId);
  return {
    vocabSize,
    eosId,
    endIds: ends,
    bosText: textOf(idOf('bos_token')),
    eosText: textOf(eosId),
    async encode(text, { addSpecial, parseSpecial }) {
      if (parseSpecial) return Int32Array.from(encode(text, addSpecial));
      encodePlain ??= createEncoder(model, false);
      return Int32Array.from((await encodePlain)(text, addSpecial));
    },
    bytesOf: (id) => bytes[id] ?? EMPTY,
    isSpecial: (id) => special.has(id),
  };
}

const EMPTY = new Uint8Array(0);

/** `parsesSpecial`: true if the text of a special token becomes that token. */
async function createEncoder(model: ModelFolder, parsesSpecial: boolean): Promise<Encoder> {
  const { PreTrainedTokenizer, AutoTokenizer } = await loadTransformers();
  const { tokenizer: file, tokenizerConfig, folder } = model;
  const refuse = (cause: unknown): never => {
    throw invalid(`the tokenizer of ${folder}: ${messageOf(cause)}`, cause);
  };
  try {
    const tokenizer = parsesSpecial
      ? await AutoTokenizer.from_pretrained(folder, { local_files_only: true })
      : new PreTrainedTokenizer(
          { ...file, added_tokens: (file.added_tokens ?? []).filter((token) => !token.special) },
          tokenizerConfig,
        );
    return (text, addSpecial) => {
      try {
        return tokenizer.encode(text, { add_special_tokens: addSpecial });
      } catch (cause) {
        return refuse(cause); // some parts of its file are only read when they are needed
      }
    };
  } catch (cause) {
    return refuse(cause);
  }
}

/** A token in `tokenizer_config.json`: its text, or an object with it. */
function tokenText(value: unknown): string {
  if (typeof value === 'string') return value;
  const content = (value as { content?: unknown } | null | undefined)?.content;
  return typeof content === 'string' ? content : '';
}

function findToken({ tokenizer }: ModelFolder, text: string): number | undefined {
  const added = tokenizer.added_tokens?.find((token) => token.content === text);
  if (added) return added.id;
  const vocabulary = tokenizer.model?.vocab ?? {};
  if (!Array.isArray(vocabulary)) return (vocabulary as Record<string, number>)[text];
  const id = vocabulary.findIndex(([piece]) => piece === text);
  return id < 0 ? undefined : id;
}
