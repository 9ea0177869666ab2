/** The vocabulary of a loaded GGUF file -> its tokenizer. */
import { knowingErrors, type NativeModel } from '../../engine/native/index.ts';
import type { Tokenizer } from '../../engine/tokenizer/index.ts';

/** Texts up to this length are tokenized on the calling thread: handing them to another thread would take longer. */
const SHORT_TEXT = 4096;

/** Creates a tokenizer that splits texts as the engine does. */
export function createTokenizer(model: NativeModel): Tokenizer {
  const { tokenBytes, tokenOffsets, vocabSize } = model;
  const decoder = new TextDecoder();
  const bytesOf = (id: number): Uint8Array =>
    tokenBytes.subarray(tokenOffsets[id] ?? 0, tokenOffsets[id + 1] ?? 0);
  const textOf = (id: number): string => (id < 0 ? '' : decoder.decode(bytesOf(id)));
  const endIds = new Set<number>();
  for (let id = 0; id < vocabSize; id++) if (model.isEnd[id] === 1) endIds.add(id);
  return {
    vocabSize,
    eosId: model.eosId,
    endIds,
    bosText: textOf(model.bosId),
    eosText: textOf(model.eosId),
    async encode(text, { addSpecial, parseSpecial }) {
      const isShort = text.length <= SHORT_TEXT;
      return await knowingErrors(async () =>
        model[isShort ? 'tokenize' : 'tokenizeLong'](text, addSpecial, parseSpecial),
      );
    },
    bytesOf,
    isSpecial: (id) => model.isSpecial[id] === 1,
  };
}
