/** A context of the addon -> a backend: what one GGUF model computes steps with. */
import { fromNative } from '../errors.ts';
import { type NativeContext, type NativeModel, onDisk } from '../native/index.ts';
import type { CacheType, RopeOptions } from '../protocol/index.ts';
import type { Backend, DraftHead, EagleFile, Step, StepResult } from './backend.ts';
import type { ContextLimits } from './model.ts';
import { finishEdits, hookedSamples } from './row-edits.ts';

/** Measured at 1 to 16 rows: 4, 8, 12 take as long as 3, 7 and 11, or less. */
const CPU_ROW_TILE = 4;

/** @internal Made by the model, see `GgufModel.createBackend`. */
export class GgufBackend implements Backend {
  readonly vocabSize: number;
  readonly kvTokens: number;
  readonly batchTokens: number;
  readonly outputRows: number;
  readonly rowTile: number;
  readonly slotCount: number;
  readonly rollbackTokens: number;
  readonly windowTokens: number;
  readonly savedWindow: number;
  draftHead: DraftHead | null;
  readonly isKvUnified: boolean;
  readonly cacheShape: string;
  readonly #context: NativeContext;

  constructor(
    model: NativeModel,
    context: NativeContext,
    limits: ContextLimits,
    how: { fusedAttention: boolean; cacheType: CacheType; rope: RopeOptions | null; usesGpu: boolean },
  ) {
    const { fusedAttention, cacheType, rope, usesGpu } = how;
    this.vocabSize = model.vocabSize;
    this.kvTokens = limits.kvTokens; // the engine rounds its own number up, never down
    this.batchTokens = limits.batchTokens;
    this.outputRows = Math.max(limits.maxOutputs, limits.slotCount);
    this.rowTile = usesGpu ? 1 : CPU_ROW_TILE;
    this.slotCount = limits.slotCount;
    this.rollbackTokens = model.hasRecurrentState ? context.rollbackTokens : Infinity;
    this.windowTokens = context.windowTokens;
    this.savedWindow = model.slidingWindow;
    this.draftHead = context.hasDraftHead
      ? { kind: 'own', mostDrafts: context.mostDrafts || Infinity }
      : null;
    this.isKvUnified = limits.isKvUnified;
    const slots = `${limits.slotCount} slots${limits.isWindowCacheFull === false ? ' with small windows' : ''}`;
    const layout = limits.isKvUnified ? 'pool' : slots;
    this.cacheShape = `${layout}, ${cacheType}${fusedAttention ? '' : ', plain attention'}${rope ? `, ${JSON.stringify(rope)}` : ''}`;
    this.#context = context;
  }

  get threads(): number {
    return this.#context.threads;
  }

  saveCheckpoint(slot: number, number: number): Promise<number> {
    return this.#context.saveCheckpoint(slot, number);
  }

  saveSlot(memoryEdits: Int32Array, slot: number): Promise<Uint8Array> {
    return this.#context.saveSequence(memoryEdits, slot);
  }

  loadSlot(memoryEdits: Int32Array, slot: number, state: Uint8Array): Promise<void> {
    return this.#context.loadSequence(memoryEdits, slot, state);
  }

  async step(step: Step): Promise<StepResult> {
    const { rowEdits, ...rest } = step;
    const result = await this.#context.step({ ...rest, ...hookedSamples(rowEdits) });
    return await finishEdits(this.#context, rowEdits, result);
  }

  async loadAdapter(path: string): Promise<number> {
    try {
      return await this.#context.loadAdapter(onDisk(path));
    } catch (error) {
      throw fromNative(error);
    }
  }

  mixAdapters(adapters: readonly number[], scales: readonly number[]): Promise<number> {
    return this.#context.mixAdapters(Uint32Array.from(adapters), Float32Array.from(scales));
  }

  freeAdapter(adapter: number): Promise<void> {
    return this.#context.freeAdapter(adapter);
  }

  async attachHead({ model, layers }: EagleFile): Promise<void> {
    try {
      await this.#context.attachHead(model, Uint32Array.from(layers));
    } catch (error) {
      throw fromNative(error);
    }
    this.draftHead = { kind: 'eagle3', mostDrafts: Infinity };
  }

  async detachHead(): Promise<void> {
    this.draftHead = null;
    await this.#context.detachHead();
  }

  abortStep(): void {
    this.#context.abort();
  }

  close(): Promise<void> {
    return this.#context.close();
  }
}
