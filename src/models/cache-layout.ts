/** A model, the length and number of its sequences -> cells of its KV cache: one pool, or some for each sequence. */

import { errorAt } from '../errors.ts';
import type { ModelOptions } from '../protocol/index.ts';
import { CELLS_ROUNDED_TO, type LoadedModel } from './formats/index.ts';

const DEFAULT_KV_BYTES = 2 ** 32;
const MAX_DEFAULT_POOL = 32_768;

export type CacheFacts = Pick<
  LoadedModel,
  | 'contextLength'
  | 'kvBytesPerToken'
  | 'supportsNonUnifiedKv'
  | 'supportsUnifiedKv'
  | 'selectsBlocks'
  | 'prefersUnifiedKv'
  | 'supportsSmallWindow'
  | 'isTiny'
  | 'state'
>;

/** Recurrent state that all sequences of a context may take by default, in bytes. */
const STATE_BYTES = 2 ** 31;
/** Slots that are provided before rollback, because rollback multiplies the state of each slot. */
const FIRST_SLOTS = 12;
const MOST_ROLLBACK = 4;
/**
 * Highest number of checkpoints per slot, and lowest number for all slots. There are more as long as they take no more than these bytes.
 */
const SLOT_CHECKPOINTS = 4;
const FEW_CHECKPOINTS = 8;
const CHECKPOINT_BYTES = 2 ** 28;

/**
 * Number of slots of a model with recurrent state, and how many tokens each can be rolled back: as many of both as memory allows. Running
 * sequences take `running` of the slots, the others hold prefixes.
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
 * Gives each sequence the cells of a full context if memory allows it, else as many as there is room for. The KV cache is unified if that
 * is faster or if cells have to be shared; else it is non-unified, and attention reads no other sequence's cells.
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

/**
 * Gives each sequence separate cells, as the option `why` requires: in a shared pool the position of cells would depend on other sequences,
 * and shared cells would stay.
 */
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
