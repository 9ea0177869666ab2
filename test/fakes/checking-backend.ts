/** Steps -> rows of a model that predicts by hash. Its cache holds tokens instead of tensors, and it checks every step against them. */
import {
  type Backend,
  MEMORY_COPY,
  MEMORY_FORGET,
  MEMORY_REMOVE,
  MEMORY_RESTORE,
  PASS_TOKENS,
  type Step,
  type StepResult,
} from '../../src/engine/backend/index.ts';
import { ROW_STATUS } from '../../src/engine/native/index.ts';
import { EngineStates } from './engine-states.ts';
import { checkDraft, FakeDrafter } from './fake-drafter.ts';
import { FakeMatcher, maskRow, optionsOf, sampleRow, scoreRow } from './fake-sampler.ts';
import { hashLogits, predictedToken } from './hash-model.ts';
import { EMPTY_ROW, type Row, toColumns } from './rows.ts';

/** One cell of the cache: shared by all slots that copied it. */
type Cell = { readonly token: number; readonly adapter: number };
/** Stands before a piece of a cache, where its slot has no cells. */
const HOLE: Cell = { token: 254, adapter: 0 };

/** Limits and habits of the fake. */
export type CheckingOptions = {
  readonly kvTokens: number;
  readonly slotCount: number;
  readonly batchTokens: number;
  /** Default: as many as a batch has tokens. */
  readonly outputRows?: number;
  readonly isKvUnified: boolean;
  readonly rollbackTokens: number;
  readonly windowTokens: number;
  /** Default: the same. */
  readonly savedWindow?: number;
  readonly rowTile: number;
  readonly vocabSize: number;
  /** Returns true if a step that allows a run-ahead step is followed by one. For backends that cannot undo one. */
  readonly runsAhead?: () => boolean;
  /** Fails a step in the middle, as an aborted pass does, when it returns true. */
  readonly abortsStep?: () => boolean;
  /** Returns true if the cache has no room for a step, regardless of its contents. */
  readonly isFull?: (step: Step) => boolean;
};

/** Checks what the scheduler asks for; throws a plain Error where a real cache would be corrupted. */
export class CheckingBackend implements Backend {
  readonly vocabSize: number;
  readonly kvTokens: number;
  readonly batchTokens: number;
  readonly outputRows: number;
  readonly slotCount: number;
  readonly isKvUnified: boolean;
  readonly rollbackTokens: number;
  readonly draftHead = null;
  readonly windowTokens: number;
  readonly savedWindow: number;
  readonly rowTile: number;
  readonly threads = 1;
  steps = 0;
  /** Tokens of each step. */
  readonly stepTokens: number[] = [];
  computedTokens = 0;
  mostCells = 0;
  readonly #options: CheckingOptions;
  readonly #slots: Cell[][];
  /** (slots) what cannot be cut of the cache: the cells that it is of, and how many of the last can be taken back. */
  readonly #states: { cells: Cell[]; left: number; lost: number }[];
  /** States of a model with recurrent state. Null if it has none. */
  readonly #engine: EngineStates | null;
  readonly #checkpoints = new Map<number, Cell[]>();
  /** Slots that get a copy with the next step, where that is not done at once. */
  readonly #late = new Set<number>();
  /** By slot: the place of the last cell that a run-ahead step has filled, until a step asks for it. */
  readonly #ahead = new Map<number, number>();
  /** Edits that returned a slot to a checkpoint, and that freed one. */
  restored = 0;
  forgotten = 0;
  readonly #adapters = new Set([0]);
  /** Adapters of the steps so far. */
  readonly turns: number[] = [];
  #aborted = false;
  #closed = false;

  constructor(options: CheckingOptions) {
    this.#options = options;
    this.vocabSize = options.vocabSize;
    this.kvTokens = options.kvTokens;
    this.batchTokens = options.batchTokens;
    this.outputRows = options.outputRows ?? options.batchTokens;
    this.slotCount = options.slotCount;
    this.isKvUnified = options.isKvUnified;
    this.rollbackTokens = options.rollbackTokens;
    this.windowTokens = options.windowTokens;
    this.savedWindow = options.savedWindow ?? options.windowTokens;
    this.rowTile = options.rowTile;
    this.#slots = Array.from({ length: options.slotCount }, () => []);
    this.#states = this.#slots.map(() => ({ cells: [], left: 0, lost: 0 }));
    const { slotCount, rollbackTokens, isKvUnified } = options;
    this.#engine = this.#hasState
      ? new EngineStates(slotCount, rollbackTokens, isKvUnified, PASS_TOKENS)
      : null;
  }

  async step(step: Step): Promise<StepResult> {
    if (this.#closed) throw Object.assign(new Error('closed'), { code: 'CLOSED' });
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
    this.#late.clear();
    if (this.#options.isFull?.(step)) throw Object.assign(new Error('no room'), { code: 'KV_FULL' });
    const stopAt = this.#options.abortsStep?.() ? step.tokens.length >> 1 : step.tokens.length;
    const prefixes: number[][] = []; // (tokens) all tokens up to each
    for (const state of this.#states) state.left = 0;
    const computed: number[] = [];
    for (let i = 0; i < stopAt; i++) {
      const slot = step.sequences[i]!;
      const cells = this.#slots[slot]!;
      if (cells.some(({ adapter }) => adapter !== step.adapter))
        throw new Error(`slot ${slot} holds tokens of another adapter than ${step.adapter}`);
      const cell = { token: step.tokens[i]!, adapter: step.adapter };
      const isAhead = this.#ahead.get(slot) === step.positions[i];
      this.#ahead.delete(slot);
      if (isAhead) this.#checkAhead(step, i);
      else {
        this.#compute(slot, cell, step.positions[i]!, i > 0 && step.sequences[i - 1] === slot);
        computed.push(slot);
      }
      prefixes.push(cells.map(({ token }) => token));
    }
    this.computedTokens += stopAt;
    this.#engine?.step(computed);
    this.#checkCapacity();
    if (stopAt < step.tokens.length || this.#aborted) {
      throw Object.assign(new Error('aborted'), { code: 'ABORTED' });
    }
    const samples = this.#sample(step, prefixes);
    const isAhead = this.#mayRunAhead(step, samples);
    for (const [row, { token }] of isAhead ? samples.entries() : []) {
      const slot = step.sequences[step.sampleRows[row]!]!;
      this.#compute(slot, { token, adapter: step.adapter }, this.#slots[slot]!.length, false);
      this.#ahead.set(slot, this.#slots[slot]!.length - 1);
    }
    if (isAhead) this.#engine?.step(samples.map((_, row) => step.sequences[step.sampleRows[row]!]!));
    this.#checkCapacity();
    return {
      samples: toColumns(samples),
      scores: toColumns(this.#score(step, prefixes)),
      ...(isAhead ? { isAhead } : {}),
    };
  }

  get #hasState(): boolean {
    return this.rollbackTokens !== Infinity;
  }

  /** Adds a token to a slot, and to its state: there it can be taken back if it is not the first one of its pass. */
  #compute(slot: number, cell: Cell, position: number, isBehind: boolean): void {
    const cells = this.#slots[slot]!;
    if (cells.length !== position)
      throw new Error(`slot ${slot} holds ${cells.length} tokens, not ${position}`);
    const state = this.#states[slot]!;
    const reads = this.savedWindow > 0 ? this.savedWindow - 1 : this.#hasState ? cells.length : 0;
    const [held, wanted] = [state.cells, cells].map((each) => each.slice(cells.length - reads));
    const outside = this.#outside(position);
    if (state.lost > outside)
      throw new Error(`slot ${slot} reads a token at ${outside}, whose cell was taken`);
    if (this.windowTokens > 0 && (!isBehind || !this.isKvUnified)) state.lost = outside; // each pass takes cells outside of its window
    if (reads > 0 && JSON.stringify(held) !== JSON.stringify(wanted))
      throw new Error(`slot ${slot} continues from another state than that of its tokens`);
    cells.push(cell);
    state.cells = [...state.cells, cell];
    state.left = isBehind ? Math.min(state.left + 1, this.rollbackTokens) : 0;
  }

  /** Tokens in front of the window of the one at a position. */
  #outside(position: number): number {
    return this.savedWindow > 0 ? Math.max(0, position + 1 - this.savedWindow) : 0;
  }

  /** The token that was computed ahead is the one that the step asks for. */
  #checkAhead({ sequences, tokens, positions }: Step, i: number): void {
    const cells = this.#slots[sequences[i]!]!;
    if (cells.length !== positions[i]! + 1 || cells.at(-1)!.token !== tokens[i])
      throw new Error(`slot ${sequences[i]} has computed another token ahead`);
  }

  #mayRunAhead({ mayRunAhead, drafts, sampleRows }: Step, samples: readonly Row[]): boolean {
    return (
      mayRunAhead &&
      this.#hasState &&
      sampleRows.length > 0 &&
      !drafts?.drafted.some((token) => token >= 0) &&
      samples.every(
        ({ status, token, forced, drafts }) =>
          status === ROW_STATUS.SAMPLED && token >= 0 && forced.length === 0 && drafts.length === 0,
      ) &&
      (this.#options.runsAhead?.() ?? true)
    );
  }

  /** Samples each row whose drafts were sampled before it. */
  #sample(step: Step, prefixes: readonly (readonly number[])[]): Row[] {
    const drafted = step.drafts?.drafted;
    const rows: Row[] = [];
    let reached = -1; // the draft whose row counts
    for (const [i] of step.samplers.entries()) {
      const draft = drafted?.[i] ?? -1;
      if (draft >= 0) checkDraft(step, i, prefixes);
      if (draft >= 0 && i !== reached) {
        rows.push({ ...EMPTY_ROW, status: ROW_STATUS.PASSED_OVER });
        continue;
      }
      const row = this.#sampleRow(step, i, prefixes[step.sampleRows[i]!]!);
      const tokens = [row.token, ...row.forced];
      const wrong = tokens.findIndex((token, at) => drafted?.[i + 1 + at] !== token);
      reached = wrong < 0 ? i + tokens.length : -1;
      const drafter = FakeDrafter.of(step.drafts?.drafters[i]);
      const text = [...prefixes[step.sampleRows[i]!]!, ...tokens];
      rows.push({
        ...row,
        drafts: wrong >= 0 && drafter ? drafter.draft(text, step.drafts!.limits[3 * i]!) : [],
      });
    }
    return rows;
  }

  #sampleRow(step: Step, i: number, prefix: readonly number[]): Row {
    const sampler = step.samplers[i]!;
    const matcher = FakeMatcher.of(step.matchers?.[i]);
    const edit = step.rowEdits.find(({ sample }) => sample === i);
    const { candidates, topLogprobs, allowed } = optionsOf(sampler);
    if (!matcher && !edit && candidates === 0 && topLogprobs < 0 && !allowed)
      return this.#predict(prefix, step.adapter, optionsOf(sampler).forced);
    const logits = hashLogits(prefix, this.vocabSize, step.adapter);
    const masked = maskRow(logits, sampler, matcher);
    if (!edit) return sampleRow(logits, masked, sampler, matcher, false);
    edit.row().set(masked);
    if (!edit.edit()) return { ...EMPTY_ROW, status: ROW_STATUS.AWAITS_EDIT };
    return sampleRow(logits, edit.row(), sampler, matcher, true);
  }

  /** The predicted token, and what the model would predict after it as forced tokens. */
  #predict(prefix: readonly number[], adapter: number, mostForced: number): Row {
    const tokens = [...prefix];
    const predict = (): number => predictedToken(tokens, this.vocabSize, adapter);
    const token = predict();
    tokens.push(token);
    const count = token % (mostForced + 1);
    for (let i = 0; i < count; i++) tokens.push(predict());
    return { ...EMPTY_ROW, token, forced: tokens.slice(prefix.length + 1) };
  }

  #score({ scoreRows, adapter }: Step, prefixes: readonly (readonly number[])[]): Row[] {
    return Array.from({ length: scoreRows.length / 3 }, (_, i) => {
      const [at, token, k] = scoreRows.subarray(3 * i, 3 * i + 3);
      return scoreRow(hashLogits(prefixes[at!]!, this.vocabSize, adapter), token!, k!);
    });
  }

  abortStep(): void {
    this.#aborted = true;
  }

  readonly cacheShape = 'fake';

  async saveCheckpoint(slot: number, number: number): Promise<number> {
    await new Promise((resolve) => setImmediate(resolve));
    if (this.#ahead.has(slot)) throw new Error('a checkpoint of a slot that is ahead');
    if (this.#checkpoints.has(number)) throw new Error('a checkpoint of a number that is in use');
    this.#checkpoints.set(number, this.#states[slot]!.cells);
    return 1;
  }

  get checkpoints(): number {
    return this.#checkpoints.size;
  }

  async saveSlot(memoryEdits: Int32Array, slot: number): Promise<Uint8Array> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#edit(memoryEdits);
    return Uint8Array.from(this.#slots[slot]!.flatMap(({ token, adapter }) => [token, adapter]));
  }

  async loadSlot(memoryEdits: Int32Array, slot: number, state: Uint8Array): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#edit(memoryEdits);
    if (this.#slots[slot]!.length > 0) throw new Error(`loads into slot ${slot}, which is not empty`);
    if (state[0] === 255) throw Object.assign(new Error('does not fit'), { code: 'KV_FULL' });
    this.#slots[slot] = Array.from({ length: state.length / 2 }, (_, i) => {
      const [token, adapter] = state.subarray(2 * i) as unknown as [number, number];
      return token === HOLE.token ? HOLE : { token, adapter };
    });
    const cells = this.#slots[slot]!.slice();
    this.#states[slot] = { cells, left: 0, lost: this.#outside(cells.length - 1) };
    this.#engine?.load(slot);
    this.#checkCapacity();
  }

  async loadAdapter(path: string): Promise<number> {
    if (path === '') throw Object.assign(new Error('no adapter'), { code: 'MODEL_INVALID' });
    const adapter = Math.max(...this.#adapters) + 1;
    this.#adapters.add(adapter);
    return adapter;
  }

  async mixAdapters(adapters: readonly number[]): Promise<number> {
    if (!adapters.every((adapter) => this.#adapters.has(adapter))) throw new Error('a part is not loaded');
    return await this.loadAdapter('mix');
  }

  async freeAdapter(adapter: number): Promise<void> {
    if (adapter === 0 || !this.#adapters.delete(adapter)) throw new Error(`no adapter ${adapter}`);
  }

  async attachHead(): Promise<void> {}

  async detachHead(): Promise<void> {}

  async close(): Promise<void> {
    this.#closed = true;
  }

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
      const state = this.#states[slot]!;
      if (kind === MEMORY_FORGET) {
        if (!this.#checkpoints.delete(target)) throw new Error(`forgets checkpoint ${target}, which is none`);
        this.forgotten += 1;
      } else if (kind === MEMORY_RESTORE) {
        const restored = this.#checkpoints.get(target);
        if (this.#late.has(slot)) throw new Error(`restores slot ${slot}, into which the next step copies`);
        if (restored?.length !== from)
          throw new Error(`restores checkpoint ${target} at ${from}, which is none`);
        this.#states[slot] = { cells: restored, left: 0, lost: this.#outside(from) };
        this.#engine?.load(slot);
        cells.length = from;
        this.#ahead.delete(slot);
        this.restored += 1;
      } else if (kind === MEMORY_REMOVE) {
        const cut = state.cells.length - Math.max(from, 0);
        if (from > 0 && this.#hasState && cut > state.left)
          throw new Error(`a recurrent state cannot be taken back by ${cut} tokens`);
        if (from > 0) this.#engine?.cut(slot, cut);
        else this.#engine?.free(slot);
        cells.length = Math.min(cells.length, Math.max(from, 0));
        this.#states[slot] = {
          cells: state.cells.slice(0, cells.length),
          left: 0,
          lost: from > 0 ? state.lost : 0,
        };
        if (from <= 0) this.#ahead.delete(slot);
      } else if (kind === MEMORY_COPY) {
        const before = this.#slots[target]!;
        if (before.length > 0 && before.length !== from)
          throw new Error(`copies to ${from} of slot ${target}, which has ${before.length} tokens`);
        if (to > cells.length)
          throw new Error(`copies ${to} tokens of slot ${slot}, which holds ${cells.length}`);
        if (!this.isKvUnified) this.#late.add(target);
        const copied = cells.slice(from, to < 0 ? cells.length : to);
        if (copied.includes(HOLE)) throw new Error(`copies tokens of slot ${slot} that it does not hold`);
        if (from > 0 && !this.isKvUnified) throw new Error('copies a piece to cells of their own');
        const head: Cell[] = before.length > 0 ? before : Array(from).fill(HOLE);
        this.#slots[target] = [...head, ...(this.isKvUnified ? copied : copied.map((cell) => ({ ...cell })))];
        const own = this.#hasState ? state.cells : state.cells.slice(0, copied.length);
        this.#states[target] = { cells: own, left: 0, lost: state.lost };
        state.left = 0;
        this.#engine?.copy(slot, target);
      }
    }
  }

  #checkCapacity(): void {
    const cells = new Set(this.#slots.flat().filter((cell) => cell !== HOLE)).size;
    this.mostCells = Math.max(this.mostCells, cells);
    if (cells > this.kvTokens) throw new Error(`${cells} cells in use, the cache has ${this.kvTokens}`);
    const perSlot = this.kvTokens / this.slotCount;
    if (!this.isKvUnified && this.#slots.some((slot) => slot.length > perSlot))
      throw new Error('a slot holds more than its cells');
  }
}
