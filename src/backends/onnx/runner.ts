/** A step -> rows of logits in shared memory: edits of the cache, then runs of the graph. */
import type { InferenceSession, Tensor } from 'onnxruntime-node';
import { OnpolicyError } from '../../errors.ts';
import { MEMORY_COPY, MEMORY_REMOVE } from '../backend.ts';
import { type Chunk, toBatches, toChunks, toRounds } from './batches.ts';
import { type CacheArray, SlotCache } from './cache.ts';
import { copyFromHalf } from './half.ts';
import type { Decoder, GraphStep, MediaRows, StartOptions } from './messages.ts';

type Feeds = Record<string, Tensor>;
type TensorClass = typeof Tensor;

/** The decoder, and what makes ids embeddings if it takes those; null: it takes ids. */
type Graphs = {
  readonly session: InferenceSession;
  readonly decoder: Decoder;
  readonly embeddings: InferenceSession | null;
};

/** Computes steps on one graph. */
export class Runner {
  readonly #session: InferenceSession;
  readonly #embeddings: InferenceSession | null;
  readonly #decoder: Decoder;
  readonly #Tensor: TensorClass;
  readonly #cache: SlotCache;
  readonly #logits: Float32Array; // (rows, vocabulary) shared with the sampler
  readonly #abort: Int32Array; // (1)

  constructor({ session, decoder, embeddings }: Graphs, tensorClass: TensorClass, start: StartOptions) {
    this.#session = session;
    this.#embeddings = embeddings;
    this.#decoder = decoder;
    this.#Tensor = tensorClass;
    this.#cache = new SlotCache(decoder, start.slotCount);
    this.#logits = new Float32Array(start.logits);
    this.#abort = new Int32Array(start.abort);
  }

  /** Runs a step. Fails with `ABORTED` between two runs; what was computed stays in the cache. */
  async step(step: GraphStep): Promise<void> {
    this.#edit(step.memoryEdits);
    const rowOf = new Map<number, number>();
    for (const [row, token] of step.rows.entries()) rowOf.set(token, row);
    for (const round of toRounds(toChunks(step.sequences, step.positions), this.#decoder))
      for (const batch of toBatches(round, this.#decoder)) {
        if (Atomics.load(this.#abort, 0) === 1) throw new OnpolicyError('ABORTED', 'the step was aborted');
        await this.#run(batch, step, rowOf);
      }
  }

  /** The whole cache of a slot after these edits. */
  save(edits: Int32Array, slot: number): Uint8Array {
    this.#edit(edits);
    return this.#cache.save(slot);
  }

  /** Fills a slot that is empty after these edits. */
  load(edits: Int32Array, slot: number, state: Uint8Array): void {
    this.#edit(edits);
    if (!this.#cache.load(slot, state))
      throw Object.assign(new Error('the saved cache does not fit into this context'), { code: 'KV_FULL' });
  }

  #edit(edits: Int32Array): void {
    for (let i = 0; i < edits.length; i += 5) {
      const [kind, slot, target, from, to] = edits.subarray(i, i + 5) as unknown as number[] & { length: 5 };
      if (kind === MEMORY_REMOVE) this.#cache.cut(slot!, from!);
      else if (kind === MEMORY_COPY)
        this.#cache.copy(slot!, target!, to! < 0 ? this.#cache.lengthOf(slot!) : to!);
    }
  }

  /** One run of the graph. What it gives is handed over, where outputs of our own would be copied once more. */
  async #run(batch: readonly Chunk[], step: GraphStep, rowOf: ReadonlyMap<number, number>): Promise<void> {
    const { cache, fresh, takesKept } = this.#decoder;
    const count = batch[0]!.count; // the longest
    const slots = batch.map(({ slot }) => slot);
    const block = this.#cache.assemble(slots);
    // Of an empty block no columns are given, however many it has.
    const columns = batch.every(({ past }) => past === 0) ? 0 : block.columns;
    const kept = this.#keptPositions(batch, rowOf);
    const feeds = await this.#embed(
      this.#feed(batch, step, { rows: block.rows, columns, kept }),
      batch,
      step.media,
    );
    for (const [i, tensor] of cache.entries())
      feeds[tensor.past] = this.#cacheTensor(i, block.arrays[i]!, block.rows, columns);
    const wanted = cache.map(({ present }) => present);
    const results = await this.#session.run(feeds, kept > 0 ? ['logits', ...wanted] : wanted);
    const given = wanted.map((name) => numbersOf(results[name]!));
    const counts = batch.map((chunk) => chunk.count);
    if (fresh) this.#cache.append(block, slots, counts, given);
    else this.#cache.replace(block, slots, counts, given);
    if (kept === 0) return;
    const outputs = takesKept ? kept : count;
    this.#takeLogits(numbersOf(results['logits']!), batch, rowOf, outputs - count, outputs);
  }

  /** How many of the last positions of a batch need logits; 0: none. */
  #keptPositions(batch: readonly Chunk[], rowOf: ReadonlyMap<number, number>): number {
    const { count: longest } = batch[0]!;
    let first = longest;
    for (const { at, count } of batch)
      for (let i = 0; i < count && i < first; i++) if (rowOf.has(at + i)) first = i;
    return longest - first;
  }

  #feed(
    batch: readonly Chunk[],
    step: GraphStep,
    { rows, columns, kept }: { rows: number; columns: number; kept: number },
  ): Feeds {
    const { isGrouped, takesMask, takesPositions, takesKept, hasBranch } = this.#decoder;
    const count = batch[0]!.count;
    const longest = Math.max(...batch.map((chunk) => chunk.past + chunk.count));
    const width = isGrouped ? longest : columns + count;
    const ids = new BigInt64Array(rows * count);
    const positions = new BigInt64Array(rows * count);
    const mask = new BigInt64Array(rows * width);
    const used = new Set<number>();
    for (const chunk of batch) {
      const row = this.#cache.rowOf(chunk.slot);
      used.add(row);
      for (let i = 0; i < count; i++) {
        const at = chunk.at + Math.min(i, chunk.count - 1); // padding repeats the last token
        ids[row * count + i] = BigInt(Math.max(0, step.tokens[at]!)); // below 0: a row of a medium comes there
        positions[row * count + i] = BigInt(step.positions[at]!);
      }
      const start = row * width;
      if (isGrouped) mask.fill(1n, start, start + chunk.past + chunk.count);
      else {
        const first = start + this.#cache.startOf(chunk.slot);
        mask.fill(1n, first, first + chunk.past);
        mask.fill(1n, start + columns, start + columns + chunk.count);
      }
    }
    // A row without a slot sees one token, so that its numbers stay finite.
    for (let row = 0; row < rows; row++)
      if (!used.has(row)) mask[row * width + (isGrouped ? 0 : columns)] = 1n;
    const tensor = (data: BigInt64Array, dims: number[]): Tensor => new this.#Tensor('int64', data, dims);
    return {
      input_ids: tensor(ids, [rows, count]),
      ...(takesMask ? { attention_mask: tensor(mask, [rows, width]) } : {}),
      ...(takesPositions ? { position_ids: tensor(positions, [rows, count]) } : {}),
      ...(takesKept ? { num_logits_to_keep: tensor(BigInt64Array.of(BigInt(Math.max(kept, 1))), []) } : {}),
      ...(hasBranch ? { use_cache_branch: new this.#Tensor('bool', [columns > 0], [1]) } : {}),
    };
  }

  /** Embeddings in the place of ids, with the rows of media among them, where the decoder takes those. */
  async #embed(
    { input_ids: ids, ...others }: Feeds,
    batch: readonly Chunk[],
    media: readonly MediaRows[],
  ): Promise<Feeds> {
    if (!this.#embeddings) return { input_ids: ids!, ...others };
    const made = await this.#embeddings.run({ input_ids: ids! });
    const embeds = made[this.#embeddings.outputNames[0]!]!;
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
        data.set(rows, (this.#cache.rowOf(chunk.slot) * length + first - chunk.at) * size);
      }
    return { ...others, inputs_embeds: embeds };
  }

  #cacheTensor(index: number, array: CacheArray, rows: number, columns: number): Tensor {
    const { heads, size } = this.#decoder.cache[index]!;
    const data = array.subarray(0, rows * heads * columns * size);
    const dims = [rows, heads, columns, size];
    return data instanceof Uint16Array
      ? new this.#Tensor('float16', data as never, dims)
      : new this.#Tensor('float32', data, dims);
  }

  /** Copies the rows that were asked for. `shift`: from a position of the batch to one of the logits. */
  #takeLogits(
    logits: CacheArray, // (rows, outputs, vocabulary)
    batch: readonly Chunk[],
    rowOf: ReadonlyMap<number, number>,
    shift: number,
    outputs: number,
  ): void {
    const { vocabSize } = this.#decoder;
    for (const chunk of batch)
      for (let i = 0; i < chunk.count; i++) {
        const target = rowOf.get(chunk.at + i);
        if (target === undefined) continue;
        const from = (this.#cache.rowOf(chunk.slot) * outputs + i + shift) * vocabSize;
        const row = logits.subarray(from, from + vocabSize);
        const place = this.#logits.subarray(target * vocabSize, (target + 1) * vocabSize);
        if (row instanceof Uint16Array) copyFromHalf(row, place);
        else place.set(row);
      }
  }
}

/** 16-bit floats as their bits, whatever class of array this version of Node has for them. */
function numbersOf({ data }: Tensor): CacheArray {
  if (data instanceof Float32Array || data instanceof Uint16Array) return data;
  const { buffer, byteOffset, length } = data as unknown as Uint16Array;
  return new Uint16Array(buffer, byteOffset, length);
}
