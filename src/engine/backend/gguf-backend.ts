/** A context of the addon -> a backend: what one GGUF model computes steps with. */

import type { CacheType, RopeOptions } from '../../protocol/index.ts';
import { knowingErrors, type NativeContext, type NativeModel, onDisk } from '../native/index.ts';
import type { Backend, ContextSettings, DraftHead } from './backend.ts';
import { finishEdits, hookedSamples } from './row-edits.ts';

/** Measured at 1 to 16 rows: 4, 8, 12 take as long as 3, 7 and 11, or less. */
const CPU_ROW_TILE = 4;

/** The backend of a context that was made with these limits. */
export function ggufBackend(
  model: NativeModel,
  context: NativeContext,
  limits: ContextSettings,
  how: { fusedAttention: boolean; cacheType: CacheType; rope: RopeOptions | null; usesGpu: boolean },
): Backend {
  const { fusedAttention, cacheType, rope, usesGpu } = how;
  const { kvTokens, batchTokens, slotCount, isKvUnified } = limits;
  const slots = `${slotCount} slots${limits.isWindowCacheFull === false ? ' with small windows' : ''}`;
  const layout = isKvUnified ? 'pool' : slots;
  let draftHead: DraftHead | null = context.hasDraftHead
    ? { kind: 'own', mostDrafts: context.mostDrafts || Infinity }
    : null;
  return {
    vocabSize: model.vocabSize,
    kvTokens, // the engine rounds its own number up, never down
    batchTokens,
    outputRows: Math.max(limits.maxOutputs, slotCount),
    rowTile: usesGpu ? 1 : CPU_ROW_TILE,
    slotCount,
    rollbackTokens: model.hasRecurrentState ? context.rollbackTokens : Infinity,
    windowTokens: context.windowTokens,
    savedWindow: model.slidingWindow,
    isKvUnified,
    cacheShape: `${layout}, ${cacheType}${fusedAttention ? '' : ', plain attention'}${rope ? `, ${JSON.stringify(rope)}` : ''}`,
    get draftHead() {
      return draftHead;
    },
    get threads() {
      return context.threads;
    },
    async step({ rowEdits, ...step }) {
      if (rowEdits.length === 0) return await context.step(step);
      const result = await context.step({ ...step, ...hookedSamples(rowEdits) });
      return await finishEdits(context, rowEdits, result);
    },
    saveCheckpoint: (slot, number) => context.saveCheckpoint(slot, number),
    saveSlot: (memoryEdits, slot) => context.saveSequence(memoryEdits, slot),
    loadSlot: (memoryEdits, slot, state) => context.loadSequence(memoryEdits, slot, state),
    loadAdapter: (path) => knowingErrors(() => context.loadAdapter(onDisk(path))),
    mixAdapters: (adapters, scales) =>
      context.mixAdapters(Uint32Array.from(adapters), Float32Array.from(scales)),
    freeAdapter: (adapter) => context.freeAdapter(adapter),
    async attachHead({ model: head, layers }) {
      await knowingErrors(() => context.attachHead(head, Uint32Array.from(layers)));
      draftHead = { kind: 'file', mostDrafts: Infinity };
    },
    async detachHead() {
      draftHead = null;
      await context.detachHead();
    },
    abortStep: () => context.abort(),
    close: () => context.close(),
  };
}
