/** A graph as in its file, run by onnxruntime alone: the reference for all rewrites. */
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { copyFromHalf } from '../../../src/onnx/half.ts';

/** Runs one sequence. */
export type BareSession = {
  /** Logits of every token: each of `steps` is one run behind those before it. */
  readonly run: (steps: readonly (readonly number[])[]) => Promise<Float32Array[]>;
  readonly vocabSize: number;
  /** Frees it, and on Windows its files, which cannot be removed before. */
  readonly release: () => Promise<void>;
};

/** Opens a graph with one thread. */
export async function openBare(file: string): Promise<BareSession> {
  const session = await InferenceSession.create(file, {
    intraOpNumThreads: 1,
    graphOptimizationLevel: 'basic',
  });
  const { inputMetadata, outputMetadata } = session;
  const past = inputMetadata.filter((input) => input.isTensor && input.name.startsWith('past_key_values.'));
  const logits = outputMetadata.find(({ name }) => name === 'logits');
  const vocabSize = logits?.isTensor ? Number(logits.shape.at(-1)) : 0;

  const emptyPast = (): Record<string, Tensor> =>
    Object.fromEntries(
      past.map((input) => {
        const { shape, type } = input as InferenceSession.TensorValueMetadata;
        const dims = [1, Number(shape[1]), 0, Number(shape[3])];
        const none = type === 'float16' ? new Uint16Array(0) : new Float32Array(0);
        return [input.name, new Tensor(type as 'float32', none as Float32Array, dims)];
      }),
    );

  const run = async (steps: readonly (readonly number[])[]): Promise<Float32Array[]> => {
    const rows: Float32Array[] = [];
    let cache = emptyPast();
    let before = 0;
    for (const ids of steps) {
      const total = before + ids.length;
      const numbers = (values: readonly number[], dims: readonly number[]) =>
        new Tensor('int64', BigInt64Array.from(values, BigInt), dims);
      const all: Record<string, Tensor> = {
        ...cache,
        input_ids: numbers(ids, [1, ids.length]),
        attention_mask: numbers(new Array<number>(total).fill(1), [1, total]),
        position_ids: numbers(
          ids.map((_, i) => before + i),
          [1, ids.length],
        ),
        num_logits_to_keep: numbers([ids.length], []),
        use_cache_branch: new Tensor('bool', [before > 0], [1]),
      };
      const feeds = Object.fromEntries(session.inputNames.map((name) => [name, all[name]!]));
      const results = await session.run(feeds);
      cache = Object.fromEntries(
        past.map(({ name }) => [name, results[name.replace('past_key_values', 'present')]!]),
      );
      const given = floatsOf(results['logits']!);
      for (let i = 0; i < ids.length; i++) rows.push(given.slice(i * vocabSize, (i + 1) * vocabSize));
      before = total;
    }
    return rows;
  };
  return { run, vocabSize, release: () => session.release() };
}

function floatsOf({ data }: Tensor): Float32Array {
  if (data instanceof Float32Array) return data;
  const { buffer, byteOffset, length } = data as unknown as Uint16Array;
  const values = new Float32Array(length);
  copyFromHalf(new Uint16Array(buffer, byteOffset, length), values);
  return values;
}
