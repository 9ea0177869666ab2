/** A step -> rows of logits in shared memory: edits of the cache, then runs of the graph. */
import type { InferenceSession, Tensor } from 'onnxruntime-node';
import { MEMORY_COPY, MEMORY_REMOVE } from '../engine/backend/index.ts';
import { OnpolicyError } from '../errors.ts';
import { type Chunk, toBatches, toChunks, toRounds } from './batches.ts';
import { type CacheArray, SlotCache } from './cache.ts';
import { copyFromHalf } from './half.ts';
import type { Decoder, GraphStep, MediaRows, StartOptions } from './messages.ts';

type Feeds = Record<string, Tensor>;

/** The decoder, and the graph that turns ids into embeddings. Null if the decoder takes ids. */
type Graphs = {
  readonly session: InferenceSession;
  readonly decoder: Decoder;
  readonly embeddings: InferenceSession | null;
};

/** Creates an object that computes steps on one graph. */
export function createRunner(
  { session, decoder, embeddings }: Graphs,
  TensorClass: typeof Tensor,
  { slotCount, ...memory }: StartOptions,
) {
  const slotCache = new SlotCache(decoder, slotCount);
  const shared = new Float32Array(memory.logits); // (rows, vocabulary) with the sampler
  const abort = new Int32Array(memory.abort); // (1)

  /** Runs a step. Can fail with `ABORTED` between two runs; results so far stay in the cache. */
  async function compute(step: GraphStep): Promise<void> {
    edit(step.memoryEdits);
    const rowOf = new Map<number, number>();
    for (const [row, token] of step.rows.entries()) rowOf.set(token, row);
    for (const round of toRounds(toChunks(step.sequences, step.positions), decoder))
      for (const batch of toBatches(round, decoder)) {
        if (Atomics.load(abort, 0) === 1) throw new OnpolicyError('ABORTED', 'the step was aborted');
        await run(batch, step, rowOf);
      }
  }

  /** Returns the cache of a slot after these edits. */
  function save(edits: Int32Array, slot: number): Uint8Array {
    edit(edits);
    return slotCache.save(slot);
  }

  /** Fills a slot that is empty after these edits. Returns false if the bytes do not fit this cache. */
  function load(edits: Int32Array, slot: number, state: Uint8Array): boolean {
    edit(edits);
    return slotCache.load(slot, state);
  }

  function edit(edits: Int32Array): void {
    for (let i = 0; i < edits.length; i += 5) {
      const [kind, slot, target, from, to] = edits.subarray(i, i + 5) as unknown as number[] & { length: 5 };
      if (kind === MEMORY_REMOVE) slotCache.cut(slot!, from!);
      else if (kind === MEMORY_COPY)
        slotCache.copy(slot!, target!, to! < 0 ? slotCache.lengthOf(slot!) : to!);
    }
  }

  /** Runs the graph once. Its outputs are allocated by onnxruntime, because preallocated ones would be copied once more. */
  async function run(
    batch: readonly Chunk[],
    step: GraphStep,
    rowOf: ReadonlyMap<number, number>,
  ): Promise<void> {
    const { cache, fresh, takesKept } = decoder;
    const count = batch[0]!.count; // the longest
    const slots = batch.map(({ slot }) => slot);
    const block = slotCache.assemble(slots);
    // Columns of an empty block are not passed to the graph.
    const columns = batch.every(({ past }) => past === 0) ? 0 : block.columns;
    const kept = keptPositions(batch, rowOf);
    const feeds = await embed(feed(batch, step, { rows: block.rows, columns, kept }), batch, step.media);
    for (const [i, tensor] of cache.entries())
      feeds[tensor.past] = cacheTensor(i, block.arrays[i]!, block.rows, columns);
    const wanted = cache.map(({ present }) => present);
    const results = await session.run(feeds, kept > 0 ? ['logits', ...wanted] : wanted);
    const given = wanted.map((name) => numbersOf(results[name]!));
    const counts = batch.map((chunk) => chunk.count);
    if (fresh) slotCache.append(block, slots, counts, given);
    else slotCache.replace(block, slots, counts, given);
    if (kept === 0) return;
    const outputs = takesKept ? kept : count;
    takeLogits(numbersOf(results['logits']!), batch, rowOf, outputs - count, outputs);
  }

  /** Returns how many of the last positions of a batch need logits. */
  function keptPositions(batch: readonly Chunk[], rowOf: ReadonlyMap<number, number>): number {
    const { count: longest } = batch[0]!;
    let first = longest;
    for (const { at, count } of batch)
      for (let i = 0; i < count && i < first; i++) if (rowOf.has(at + i)) first = i;
    return longest - first;
  }

  function feed(
    batch: readonly Chunk[],
    step: GraphStep,
    { rows, columns, kept }: { rows: number; columns: number; kept: number },
  ): Feeds {
    const { isGrouped, takesMask, takesPositions, takesKept, hasBranch } = decoder;
    const count = batch[0]!.count;
    const longest = Math.max(...batch.map((chunk) => chunk.past + chunk.count));
    const width = isGrouped ? longest : columns + count;
    const ids = new BigInt64Array(rows * count);
    const positions = new BigInt64Array(rows * count);
    const mask = new BigInt64Array(rows * width);
    const used = new Set<number>();
    for (const chunk of batch) {
      const row = slotCache.rowOf(chunk.slot);
      used.add(row);
      for (let i = 0; i < count; i++) {
        const at = chunk.at + Math.min(i, chunk.count - 1); // padding repeats the last token
        ids[row * count + i] = BigInt(Math.max(0, step.tokens[at]!)); // below 0: replaced by a row of a medium
        positions[row * count + i] = BigInt(step.positions[at]!);
      }
      const start = row * width;
      if (isGrouped) mask.fill(1n, start, start + chunk.past + chunk.count);
      else {
        const first = start + slotCache.startOf(chunk.slot);
        mask.fill(1n, first, first + chunk.past);
        mask.fill(1n, start + columns, start + columns + chunk.count);
      }
    }
    // A row without a slot sees one token, so that its numbers stay finite.
    for (let row = 0; row < rows; row++)
      if (!used.has(row)) mask[row * width + (isGrouped ? 0 : columns)] = 1n;
    const tensor = (data: BigInt64Array, dims: number[]): Tensor => new TensorClass('int64', data, dims);
    return {
      input_ids: tensor(ids, [rows, count]),
      ...(takesMask ? { attention_mask: tensor(mask, [rows, width]) } : {}),
      ...(takesPositions ? { position_ids: tensor(positions, [rows, count]) } : {}),
      ...(takesKept ? { num_logits_to_keep: tensor(BigInt64Array.of(BigInt(Math.max(kept, 1))), []) } : {}),
      ...(hasBranch ? { use_cache_branch: new TensorClass('bool', [columns > 0], [1]) } : {}),
    };
  }

  /** Replaces ids by embeddings, with the rows of media among them, if the decoder takes embeddings. */
  async function embed(
    { input_ids: ids, ...others }: Feeds,
    batch: readonly Chunk[],
    media: readonly MediaRows[],
  ): Promise<Feeds> {
    if (!embeddings) return { input_ids: ids!, ...others };
    const made = await embeddings.run({ input_ids: ids! });
    const embeds = made[embeddings.outputNames[0]!]!;
    const data = embeds.data as Float32Array;
    const [, length, size] = embeds.dims as [number, number, number];
    for (const chunk of batch)
      for (const { at, count, values } of media) {
        if (at + count <= chunk.at || chunk.at + chunk.count <= at) continue;
        if (values.length !== count * size)
          throw new OnpolicyError(
            'MODEL_INVALID',
            `model: its vision encoder gives rows of ${values.length / count} numbers, its embed_tokens rows of ${size}`,
          );
        const first = Math.max(at, chunk.at);
        const rows = values.subarray((first - at) * size, (chunk.at + chunk.count - at) * size);
        data.set(rows, (slotCache.rowOf(chunk.slot) * length + first - chunk.at) * size);
      }
    return { ...others, inputs_embeds: embeds };
  }

  function cacheTensor(index: number, array: CacheArray, rows: number, columns: number): Tensor {
    const { heads, size } = decoder.cache[index]!;
    const data = array.subarray(0, rows * heads * columns * size);
    const dims = [rows, heads, columns, size];
    return data instanceof Uint16Array
      ? new TensorClass('float16', data as never, dims)
      : new TensorClass('float32', data, dims);
  }

  /** Copies the requested rows. `shift`: difference between a position of the batch and one of the logits. */
  function takeLogits(
    logits: CacheArray, // (rows, outputs, vocabulary)
    batch: readonly Chunk[],
    rowOf: ReadonlyMap<number, number>,
    shift: number,
    outputs: number,
  ): void {
    const { vocabSize } = decoder;
    for (const chunk of batch)
      for (let i = 0; i < chunk.count; i++) {
        const target = rowOf.get(chunk.at + i);
        if (target === undefined) continue;
        const from = (slotCache.rowOf(chunk.slot) * outputs + i + shift) * vocabSize;
        const row = logits.subarray(from, from + vocabSize);
        const place = shared.subarray(target * vocabSize, (target + 1) * vocabSize);
        if (row instanceof Uint16Array) copyFromHalf(row, place);
        else place.set(row);
      }
  }

  return { step: compute, save, load };
}

/** Returns 16-bit floats as their bits, independent of the array class that this version of Node uses for them. */
function numbersOf({ data }: Tensor): CacheArray {
  if (data instanceof Float32Array || data instanceof Uint16Array) return data;
  const { buffer, byteOffset, length } = data as unknown as Uint16Array;
  return new Uint16Array(buffer, byteOffset, length);
}
