/** The header of an EAGLE-3 file -> the layers that it reads of its target model, checked. */
import fs from 'node:fs/promises';
import type { GgufHeader } from './header.ts';

/** Number of layers that EAGLE-3 reads; the engine supports no other number. */
const LAYERS = 3;
const MAX_LAYERS = 512;
const MAX_SIZE = 2 ** 24;

/** Properties that the target model must have. */
export type EagleFacts = {
  /** Layers of the target model whose inputs the file reads. */
  readonly layers: readonly number[];
  readonly embeddingSize: number;
  /** True if the target's token embeddings or output matrix are used, too. */
  readonly borrows: boolean;
};

export function eagleFacts(header: GgufHeader): EagleFacts {
  const key = (name: string): string => `eagle3.${name}`;
  const layers = Array.from(
    header.need(key('target_layers'), header.array(key('target_layers'), ['u32', 'i32'], LAYERS)).numbers,
  );
  const wrong = layers.find((layer) => layer < 0 || layer >= MAX_LAYERS);
  if (wrong !== undefined) header.refuse(key('target_layers'), `numbers from 0 to ${MAX_LAYERS - 1}`, wrong);
  const size = header.number(key('target_hidden_size'), { min: 1, max: MAX_SIZE });
  return {
    layers,
    embeddingSize: header.need(key('target_hidden_size'), size),
    borrows: ['token_embd.weight', 'output.weight'].some((name) => !header.tensors.has(name)),
  };
}

/**
 * Checks the properties that the engine assumes without a check.
 * @throws OnpolicyError `MODEL_INVALID`
 */
export async function checkEagle(header: GgufHeader): Promise<void> {
  eagleFacts(header);
  const key = (name: string): string => `eagle3.${name}`;
  header.number(key('block_count'), { min: 1, max: 1 });
  const keySize = header.number(key('attention.key_length'));
  const valueSize = header.number(key('attention.value_length'));
  if (keySize !== valueSize)
    header.refuse(key('attention.value_length'), `${keySize}, the size of keys`, valueSize);
  const tokens = header.values.get('tokenizer.ggml.tokens');
  const vocabSize = tokens?.type === 'array' ? tokens.value.count : 0;
  const list = header.tensor('d2t', { types: ['i64'] });
  if (!list) return;
  const ids = Buffer.alloc(list.bytes);
  const file = await fs.open(header.file);
  try {
    await file.read(ids, 0, list.bytes, list.offset);
  } finally {
    await file.close();
  }
  for (let at = 0; at < ids.length; at += 8) {
    const id = ids.readBigInt64LE(at);
    if (id < 0n || id >= BigInt(vocabSize))
      header.refuse('the tensor d2t', `ids of the ${vocabSize} tokens`, String(id));
  }
}
