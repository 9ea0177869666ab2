/** A backend that keeps tokens instead of tensors, checks every step against what its cache really holds, and predicts by hash. */
import {
  type Backend,
  MEMORY_COPY,
  MEMORY_REMOVE,
  type Step,
  type StepResult,
} from '../../src/backends/backend.ts';
import type { SampledRows, SamplerHandle } from '../../src/native/index.ts';

/** One cell of the cache: shared by all slots that copied it. */
type Cell = { readonly token: number; readonly adapter: number };

/** Limits and habits of the fake. */
export type CheckingOptions = {
  readonly kvTokens: number;
  readonly slotCount: number;
  readonly batchTokens: number;
  /** Default: as many as a batch has tokens. */
  readonly outputRows?: number;
  readonly isKvUnified: boolean;
  readonly canCutCache: boolean;
  readonly rowTile: number;
  readonly vocabSize: number;
  /** Fails a step in the middle, as an aborted pass does, when it returns true. */
  readonly abortsStep?: () => boolean;
};

/** The token that this model, with this adapter, always predicts after these tokens. */
export function predictedToken(tokens: readonly number[], vocabSize: number, adapter = 0): number {
  let hash = 17 + 101 * adapter;
  for (const token of tokens) hash = (Math.imul(hash, 31) + token + 1) >>> 0;
  return hash % vocabSize;
}

/** What a fake sampler does beside taking whatever is predicted. */
type FakeSampler = {
  /** How many candidates it hands out instead. */
  readonly candidates: number;
  /** Tokens forced after a sampled one: as many as the sampled one modulo this and one. */
  readonly forced: number;
};

/** A sampler that takes whatever is predicted. */
export function fakeSampler({ candidates = 0, forced = 0 }: Partial<FakeSampler> = {}): SamplerHandle {
  return { candidates, forced, accept() {} } as unknown as SamplerHandle;
}

/** What a sampler with candidates hands out after these tokens: different tokens with different scores, best first. */
export function predictedCandidates(
  tokens: readonly number[],
  vocabSize: number,
  count: number,
  adapter = 0,
): { ids: number[]; scores: number[] } {
  const first = predictedToken(tokens, vocabSize, adapter);
  const ids = Array.from({ length: Math.min(count, vocabSize) }, (_, i) => (first + i) % vocabSize);
  const scores: number[] = [];
  for (const id of ids)
    scores.push(Math.fround((scores.at(-1) ?? 0) - 0.05 - (((first * 31 + id * 7) % 97) / 97) * 0.6));
  return { ids, scores };
}

/** Checks what the scheduler asks for; throws a plain Error where a real cache would be corrupted. */
export class CheckingBackend implements Backend {
  readonly vocabSize: number;
  readonly kvTokens: number;
  readonly batchTokens: number;
  readonly outputRows: number;
  readonly slotCount: number;
  readonly isKvUnified: boolean;
  readonly canCutCache: boolean;
  readonly rowTile: number;
  steps = 0;
  /** Tokens of each step. */
  readonly stepTokens: number[] = [];
  computedTokens = 0;
  mostCells = 0;
  readonly #options: CheckingOptions;
  readonly #slots: Cell[][];
  readonly #adapters = new Set([0]);
  /** Adapters of the steps so far. */
  readonly turns: number[] = [];
  #aborted = false;

  constructor(options: CheckingOptions) {
    this.#options = options;
    this.vocabSize = options.vocabSize;
    this.kvTokens = options.kvTokens;
    this.batchTokens = options.batchTokens;
    this.outputRows = options.outputRows ?? options.batchTokens;
    this.slotCount = options.slotCount;
    this.isKvUnified = options.isKvUnified;
    this.canCutCache = options.canCutCache;
    this.rowTile = options.rowTile;
    this.#slots = Array.from({ length: options.slotCount }, () => []);
  }

  async step(step: Step): Promise<StepResult> {
    this.#aborted = false;
    await new Promise((resolve) => setImmediate(resolve));
    if (step.tokens.length === 0) throw new Error('an empty step');
    if (step.tokens.length > this.batchTokens) throw new Error('more tokens than a batch holds');
    const outputs = new Set(step.sampleRows);
    for (let i = 0; i < step.scoreRows.length; i += 3) outputs.add(step.scoreRows[i]!);
    if (outputs.size > this.outputRows) throw new Error('more rows of logits than a step may have');
    if (!this.#adapters.has(step.adapter))
      throw new Error(`a step with adapter ${step.adapter}, which is not loaded`);
    this.steps += 1;
    this.stepTokens.push(step.tokens.length);
    this.turns.push(step.adapter);
    this.#edit(step.memoryEdits);
    const stopAt = this.#options.abortsStep?.() ? step.tokens.length >> 1 : step.tokens.length;
    const predictions: number[] = [];
    const prefixes: number[][] = [];
    for (let i = 0; i < stopAt; i++) {
      const slot = this.#slots[step.sequences[i]!]!;
      if (slot.length !== step.positions[i])
        throw new Error(`slot ${step.sequences[i]} holds ${slot.length} tokens, not ${step.positions[i]}`);
      if (slot.some(({ adapter }) => adapter !== step.adapter))
        throw new Error(`slot ${step.sequences[i]} holds tokens of another adapter than ${step.adapter}`);
      slot.push({ token: step.tokens[i]!, adapter: step.adapter });
      prefixes.push(slot.map(({ token }) => token));
      predictions.push(
        predictedToken(
          slot.map(({ token }) => token),
          this.vocabSize,
          step.adapter,
        ),
      );
    }
    this.computedTokens += stopAt;
    this.#checkCapacity();
    if (stopAt < step.tokens.length || this.#aborted) {
      throw Object.assign(new Error('aborted'), { code: 'ABORTED' });
    }
    const samples = {
      ...toRows(Array.from(step.sampleRows, (row) => predictions[row]!)),
      ...toCandidates(step, prefixes, this.vocabSize),
      ...toForced(step, prefixes, this.vocabSize),
    };
    for (const edit of step.rowEdits) {
      const row = edit.row().fill(0);
      row[samples.tokens[edit.sample]!] = 1;
      if (edit.edit()) samples.tokens[edit.sample] = row.indexOf(Math.max(...edit.row()));
      else samples.status[edit.sample] = 3;
    }
    return { samples, scores: scoreRows(step.scoreRows, predictions) };
  }

  abortStep(): void {
    this.#aborted = true;
  }

  readonly cacheShape = 'fake';

  async saveSlot(slot: number): Promise<Uint8Array> {
    await new Promise((resolve) => setImmediate(resolve));
    return Uint8Array.from(this.#slots[slot]!.flatMap(({ token, adapter }) => [token, adapter]));
  }

  async loadSlot(memoryEdits: Int32Array, slot: number, state: Uint8Array): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#edit(memoryEdits);
    if (this.#slots[slot]!.length > 0) throw new Error(`loads into slot ${slot}, which is not empty`);
    if (state[0] === 255) throw Object.assign(new Error('does not fit'), { code: 'KV_FULL' });
    this.#slots[slot] = Array.from({ length: state.length / 2 }, (_, i) => ({
      token: state[2 * i]!,
      adapter: state[2 * i + 1]!,
    }));
    this.#checkCapacity();
  }

  async loadAdapter(path: string): Promise<number> {
    if (path === '') throw Object.assign(new Error('no adapter'), { code: 'MODEL_INVALID' });
    const adapter = Math.max(...this.#adapters) + 1;
    this.#adapters.add(adapter);
    return adapter;
  }

  async freeAdapter(adapter: number): Promise<void> {
    if (adapter === 0 || !this.#adapters.delete(adapter)) throw new Error(`no adapter ${adapter}`);
  }

  async close(): Promise<void> {}

  #edit(edits: Int32Array): void {
    for (let i = 0; i < edits.length; i += 5) {
      const [kind, slot, target, from, to] = edits.subarray(i, i + 5) as unknown as [
        number,
        number,
        number,
        number,
        number,
      ];
      const cells = this.#slots[slot]!;
      if (kind === MEMORY_REMOVE) {
        if (from > 0 && !this.canCutCache) throw new Error('a recurrent state cannot be cut');
        cells.length = Math.min(cells.length, Math.max(from, 0));
      } else if (kind === MEMORY_COPY) {
        if (this.#slots[target]!.length > 0)
          throw new Error(`copies into slot ${target}, which is not empty`);
        if (to > cells.length)
          throw new Error(`copies ${to} tokens of slot ${slot}, which holds ${cells.length}`);
        const copied = cells.slice(0, to < 0 ? cells.length : to);
        this.#slots[target] = this.isKvUnified ? copied : copied.map((cell) => ({ ...cell }));
      }
    }
  }

  #checkCapacity(): void {
    const cells = new Set(this.#slots.flat()).size;
    this.mostCells = Math.max(this.mostCells, cells);
    if (cells > this.kvTokens) throw new Error(`${cells} cells in use, the cache has ${this.kvTokens}`);
    const perSlot = this.kvTokens / this.slotCount;
    if (!this.isKvUnified && this.#slots.some((slot) => slot.length > perSlot))
      throw new Error('a slot holds more than its cells');
  }
}

function fakesOf(step: Step): FakeSampler[] {
  return step.samplers.map((sampler) => sampler as unknown as FakeSampler);
}

/** Tokens forced after those sampled: what the model would predict anyway. */
function toForced(step: Step, prefixes: readonly number[][], vocabSize: number): Pick<SampledRows, 'forced'> {
  const rows = fakesOf(step).map(({ forced }, i) => {
    const tokens = [...prefixes[step.sampleRows[i]!]!];
    const predict = (): number => predictedToken(tokens, vocabSize, step.adapter);
    const known = tokens.push(predict());
    const count = forced === 0 ? 0 : tokens.at(-1)! % (forced + 1);
    for (let i = 0; i < count; i++) tokens.push(predict());
    return tokens.slice(known);
  });
  const offsets = [0];
  for (const row of rows) offsets.push(offsets.at(-1)! + row.length);
  return { forced: { offsets: Int32Array.from(offsets), ids: Int32Array.from(rows.flat()) } };
}

function toCandidates(
  step: Step,
  prefixes: readonly number[][],
  vocabSize: number,
): Pick<SampledRows, 'candidates'> {
  const counts = fakesOf(step).map(({ candidates }) => candidates);
  if (counts.every((count) => count === 0)) return {};
  const rows = counts.map((count, i) =>
    predictedCandidates(prefixes[step.sampleRows[i]!]!, vocabSize, count, step.adapter),
  );
  const offsets = [0];
  for (const { ids } of rows) offsets.push(offsets.at(-1)! + ids.length);
  const scores = Float32Array.from(rows.flatMap((row) => row.scores));
  const ids = Int32Array.from(rows.flatMap((row) => row.ids));
  return { candidates: { offsets: Int32Array.from(offsets), ids, scores, logprobs: scores } };
}

/** A scored row: the log-probability of the token is 0 when it was predicted, else -1; the prediction is the alternative. */
function scoreRows(rows: Int32Array, predictions: readonly number[]): SampledRows {
  const at = Array.from({ length: rows.length / 3 }, (_, i) => ({
    predicted: predictions[rows[3 * i]!]!,
    token: rows[3 * i + 1]!,
  }));
  return {
    ...toRows(at.map(({ token }) => token)),
    logprobs: Float32Array.from(at, ({ predicted, token }) => (predicted === token ? 0 : -1)),
    ranks: Int32Array.from(at, ({ predicted, token }) => (predicted === token ? 1 : 2)),
    topOffsets: Int32Array.from({ length: at.length + 1 }, (_, i) => i),
    topIds: Int32Array.from(at, ({ predicted }) => predicted),
    topLogprobs: new Float32Array(at.length),
  };
}

function toRows(tokens: readonly number[]): SampledRows {
  return {
    status: new Uint8Array(tokens.length),
    tokens: Int32Array.from(tokens),
    isFinal: new Uint8Array(tokens.length),
    logprobs: new Float32Array(tokens.length),
    ranks: new Int32Array(tokens.length),
    topOffsets: new Int32Array(tokens.length + 1),
    topIds: new Int32Array(0),
    topLogprobs: new Float32Array(0),
  };
}
