/** A model, the length and number of its sequences -> cells of its KV cache: one pool, or some for each sequence. */
import { CELLS_ROUNDED_TO, type LoadedModel } from '../backends/index.ts';
import { errorAt } from '../errors.ts';
import type { ModelOptions } from '../protocol/index.ts';

const DEFAULT_KV_BYTES = 2 ** 32;
const MAX_DEFAULT_POOL = 32_768;

export type CacheFacts = Pick<
  LoadedModel,
  | 'contextLength'
  | 'kvBytesPerToken'
  | 'supportsNonUnifiedKv'
  | 'supportsUnifiedKv'
  | 'prefersUnifiedKv'
  | 'supportsSmallWindow'
  | 'isTiny'
  | 'state'
>;

/** Recurrent state that sequences of a context have together, if nothing else is asked for. */
const STATE_BYTES = 2 ** 31;
/** Slots that come before rollback, which multiplies the state of each. */
const FIRST_SLOTS = 12;
const MOST_ROLLBACK = 4;
/** Checkpoints of a slot at most, and of all slots at least; more as long as they take no more than these bytes. */
const SLOT_CHECKPOINTS = 4;
const FEW_CHECKPOINTS = 8;
const CHECKPOINT_BYTES = 2 ** 28;

/**
 * Slots of a model with recurrent state, and how many tokens each can be taken back: as many of both as there is memory for. Running
 * sequences take `running` of them, the others hold prefixes.
 */
export function stateLayout(
  { stateBytes, takesBack, checkpointSize }: CacheFacts['state'],
  slotCount: number,
  { rollbackTokens, checkpointBytes }: Pick<ModelOptions, 'rollbackTokens' | 'checkpointBytes'>,
): { slotCount: number; rollbackTokens: number; checkpointBytes: number } {
  const states = stateBytes === 0 ? Infinity : STATE_BYTES / stateBytes;
  const first = Math.min(slotCount, FIRST_SLOTS);
  const affordable = Math.max(0, Math.min(MOST_ROLLBACK, Math.floor(states / first) - 1));
  const rollback = takesBack ? (rollbackTokens ?? affordable) : 0;
  const slots = Math.min(slotCount, Math.max(first, Math.floor(states / (1 + rollback))));
  return {
    slotCount: slots,
    rollbackTokens: rollback,
    checkpointBytes:
      checkpointBytes ??
      Math.min(
        Math.max(CHECKPOINT_BYTES, FEW_CHECKPOINTS * checkpointSize),
        SLOT_CHECKPOINTS * slots * checkpointSize,
      ),
  };
}

/**
 * Cells for each sequence where memory allows it, else as many as there is room for. They are a unified KV cache if that is the faster one,
 * or if they have to be shared; else a non-unified one, whose attention reads no other sequence's cells.
 */
export function cacheLayout(
  model: CacheFacts,
  contextSize: number,
  slotCount: number,
  kvTokens: number | null,
): { kvTokens: number; isKvUnified: boolean } {
  const separate = slotCells(contextSize) * slotCount;
  const budget = kvTokens ?? Math.floor(DEFAULT_KV_BYTES / model.kvBytesPerToken);
  if (separate <= budget && model.supportsNonUnifiedKv)
    return { kvTokens: separate, isKvUnified: model.prefersUnifiedKv };
  if (!model.supportsUnifiedKv) return { kvTokens: Math.max(contextSize, budget), isKvUnified: false };
  return {
    kvTokens: Math.max(contextSize, Math.min(budget, kvTokens ?? Math.min(MAX_DEFAULT_POOL, separate))),
    isKvUnified: true,
  };
}

/** Cells of its own for each sequence, because of the option `why`: in a pool, where they lie depends on the others, and shared ones stay. */
export function ownCells(
  contextSize: number,
  slotCount: number,
  kvTokens: number | null,
  why: string,
): { kvTokens: number; isKvUnified: false } {
  const needed = slotCells(contextSize) * slotCount;
  if (kvTokens === null || kvTokens >= needed) return { kvTokens: needed, isKvUnified: false };
  throw errorAt(
    'kvTokens',
    'INVALID_REQUEST',
    `expected at least ${needed}, contextSize for each of maxSequences, with ${why}, got ${kvTokens}`,
  );
}

function slotCells(contextSize: number): number {
  return Math.ceil(contextSize / CELLS_ROUNDED_TO) * CELLS_ROUNDED_TO;
}
