/** A checked request for embeddings on a loaded model -> the vectors of its texts. */
import { atField } from '../common/index.ts';
import { contextOverflow, errorAt } from '../errors.ts';
import type { EmbeddingModel } from '../models/index.ts';
import {
  type EmbeddingResponse,
  fault,
  throwFaults,
  tokenIdFaults,
  type ValidEmbeddingRequest,
} from '../protocol/index.ts';

export async function embed(
  model: EmbeddingModel,
  request: ValidEmbeddingRequest,
  signal: AbortSignal | undefined,
): Promise<EmbeddingResponse> {
  if (model.head) {
    const msg = `expected an embedding model; ${model.name} returns scores: it is for rerank, score and classify`;
    throw errorAt('model', 'UNSUPPORTED', msg);
  }
  const { dimensions, normalize } = request;
  const { size } = model.embeddings;
  if (dimensions !== null && dimensions > size)
    throwFaults([fault(['dimensions'], 'range', `an integer from 1 to ${size}, or null`, dimensions)]);
  const sequences = await toTokens(model, request, request.inputs);
  const rows = await model.embeddings.embed(sequences, signal);
  const tokens = sequences.reduce((sum, { length }) => sum + length, 0);
  return {
    object: 'list',
    data: rows.map((row, index) => {
      const vector = toVector(row.subarray(0, dimensions ?? size), normalize);
      const embedding =
        request.encoding_format === 'base64' ? (toBase64(vector) as never) : Array.from(vector); // see the type
      return { object: 'embedding', index, embedding };
    }),
    model: request.model ?? model.name,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  };
}

type TokenForm = Pick<ValidEmbeddingRequest, 'add_special_tokens' | 'truncate_prompt_tokens'>;

/** Returns the tokens of texts. Fails with `CONTEXT_OVERFLOW` for a text longer than the model's context. */
export async function toTokens(
  model: EmbeddingModel,
  form: TokenForm,
  texts: Iterable<ValidEmbeddingRequest['inputs'][number]>,
): Promise<Int32Array[]> {
  const sequences: Int32Array[] = [];
  for (const text of texts) sequences.push(await tokensOf(model, form, text));
  return sequences;
}

async function tokensOf(
  { tokenizer, contextSize }: EmbeddingModel,
  { add_special_tokens: addSpecial, truncate_prompt_tokens: truncate }: TokenForm,
  { path, content }: ValidEmbeddingRequest['inputs'][number],
): Promise<Int32Array> {
  const isText = typeof content === 'string';
  if (!isText) throwFaults(tokenIdFaults(path.split('.'), content, tokenizer.vocabSize));
  const ids = isText
    ? await atField(path, () => tokenizer.encode(content, { addSpecial, parseSpecial: false }))
    : Int32Array.from(content);
  if (ids.length === 0) throwFaults([fault(path.split('.'), 'length', 'a text with tokens', content)]);
  const most = truncate === -1 ? contextSize : (truncate ?? Infinity);
  const kept = ids.length <= most ? ids : ids.slice(0, most);
  // Keeps the special token at the end of a cut text, because some models pool its position.
  const last = ids.at(-1)!;
  if (kept !== ids && isText && addSpecial && tokenizer.isSpecial(last)) kept[most - 1] = last;
  if (kept.length <= contextSize) return kept;
  throw contextOverflow(
    path,
    `expected at most ${contextSize} tokens, got ${kept.length}; truncate_prompt_tokens: -1 cuts longer texts`,
    { prompt_tokens: kept.length, max_model_len: contextSize },
  );
}

/** Returns a copy, scaled to length 1 if `normalize` is true. */
function toVector(row: Float32Array, normalize: boolean): Float32Array {
  if (!normalize) return row.slice();
  const length = Math.sqrt(row.reduce((sum, value) => sum + value * value, 0));
  return length === 0 ? row.slice() : row.map((value) => value / length);
}

/** Encodes the numbers as 32-bit floats, little-endian, in base64. */
function toBase64({ buffer, byteOffset, byteLength }: Float32Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('base64');
}
