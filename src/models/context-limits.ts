/** A model's facts and options -> the limits of its context: tokens, slots, rows of logits, threads. */
import { type ContextSettings, PASS_TOKENS } from '../engine/backend/index.ts';
import { defaultThreads } from '../engine/native/index.ts';
import type { ModelOptions } from '../protocol/index.ts';
import { type CacheFacts, cacheLayout, ownCells, stateLayout } from './cache-layout.ts';
import { limitsOf, type ServingOptions } from './serving-options.ts';

const DEFAULT_CONTEXT_SIZE = 8192;
/** Bytes of the logits of one chunk of a prompt that is being scored. */
const SCORE_BYTES = 80 * 2 ** 20;
const MIN_SCORE_ROWS = 32;
const MAX_SCORE_ROWS = 512;
/** Sequence ids of the engine: running sequences and prefixes kept for later ones. */
const MAX_SLOTS = 256;
const PREFIX_SLOTS = 16;
/** Number of slots for prefixes if each slot has a state, which is large. Checkpoints and idle slots hold prefixes as well. */
const STATE_PREFIX_SLOTS = 4;
/** Highest number of slots whose cells behind sliding windows are kept: `WindowGuard::kMostSequences` of the addon. */
const MOST_KEPT = 128;

/** Returns the highest number of tokens of prompt and answer together. */
export function contextSizeOf(options: ModelOptions, serving: ServingOptions, contextLength: number): number {
  return Math.min(limitsOf(options, serving).contextSize ?? DEFAULT_CONTEXT_SIZE, contextLength);
}

/** Returns the limits of a model's context. The model need not be loaded. */
export function contextLimits(
  options: ModelOptions,
  serving: ServingOptions,
  model: CacheFacts,
  vocabSize: number,
): ContextSettings {
  const { maxSequences, kvTokens, maxBatchTokens, threads } = limitsOf(options, serving);
  const contextSize = contextSizeOf(options, serving, model.contextLength);
  const isSmall = options.slidingWindow === 'window' && model.supportsSmallWindow;
  const prefixSlots =
    isSmall || model.selectsBlocks ? 0 : model.state.stateBytes > 0 ? STATE_PREFIX_SLOTS : PREFIX_SLOTS;
  const isKept =
    model.supportsSmallWindow && !isSmall && maxSequences <= MOST_KEPT && maxBatchTokens <= PASS_TOKENS;
  const most = Math.min(isKept ? MOST_KEPT : MAX_SLOTS, maxSequences + prefixSlots);
  const state = stateLayout(isKept ? { ...model.state, checkpointSize: 0 } : model.state, most, options);
  const layout = (): Pick<ContextSettings, 'kvTokens' | 'isKvUnified' | 'isWindowCacheFull'> => {
    if (serving.deterministic) return ownCells(contextSize, state.slotCount, kvTokens, 'deterministic');
    if (model.selectsBlocks)
      return ownCells(contextSize, state.slotCount, kvTokens, 'attention that selects blocks of tokens');
    if (!isSmall) return cacheLayout(model, contextSize, state.slotCount, kvTokens);
    const own = ownCells(contextSize, state.slotCount, kvTokens, 'slidingWindow: window');
    return { ...own, isWindowCacheFull: false };
  };
  return {
    ...layout(),
    ...state,
    ...(serving.prefixCache ? {} : { checkpointBytes: 0 }),
    ...(serving.deterministic ? { isDeterministic: true } : {}),
    ...(serving.speculation === false ? {} : { hasDraftHead: true }),
    batchTokens: maxBatchTokens,
    maxOutputs: outputRows(vocabSize, maxSequences),
    threads: threads ?? defaultThreads(model.isTiny),
  };
}

/** Returns the rows of logits that a step may hold: one for each running sequence, and as many as `SCORE_BYTES` hold to score a prompt. */
function outputRows(vocabSize: number, maxRunning: number): number {
  return Math.max(
    maxRunning + MIN_SCORE_ROWS,
    Math.min(MAX_SCORE_ROWS, Math.floor(SCORE_BYTES / (4 * vocabSize))),
  );
}
