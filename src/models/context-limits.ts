/** A model's facts and options -> the limits of its context: tokens, slots, rows of logits, threads. */
import { type ContextLimits, type LoadedModel, PASS_TOKENS } from '../backends/index.ts';
import { defaultThreads } from '../native/index.ts';
import type { ModelOptions } from '../protocol/index.ts';
import { cacheLayout, type ModelFacts, ownCells, smallWindows, stateLayout } from './cache-layout.ts';
import { limitsOf, type ServingOptions } from './serving-options.ts';

const DEFAULT_CONTEXT_SIZE = 8192;
/** Logits of one chunk of a prompt that is being scored. */
const SCORE_BYTES = 80 * 2 ** 20;
const MIN_SCORE_ROWS = 32;
const MAX_SCORE_ROWS = 512;
/** Sequence ids of the engine: running sequences and prefixes kept for later ones. */
const MAX_SLOTS = 256;
const PREFIX_SLOTS = 16;
/** The same where each slot has a state, which is large. Checkpoints and slots that nobody runs in hold prefixes as well. */
const STATE_PREFIX_SLOTS = 4;
/** Slots whose cells stay behind sliding windows: `WindowGuard::kMostSequences` of the addon. */
const MOST_KEPT = 128;

/** The limits of a loaded model's context. */
export function contextLimits(
  model: LoadedModel,
  options: ModelOptions,
  serving: ServingOptions,
): ContextLimits {
  const { contextLength, kvBytesPerToken, isTiny, state } = model;
  const { supportsNonUnifiedKv, supportsUnifiedKv, prefersUnifiedKv, supportsSmallWindow } = model;
  const { vocabSize } = model.tokenizer;
  const supported = { supportsNonUnifiedKv, supportsUnifiedKv, prefersUnifiedKv, supportsSmallWindow };
  return toLimits(options, serving, {
    contextLength,
    kvBytesPerToken,
    isTiny,
    vocabSize,
    ...supported,
    state,
  });
}

/** Tokens of prompt and answer together at most. */
export function contextSizeOf(options: ModelOptions, serving: ServingOptions, contextLength: number): number {
  return Math.min(limitsOf(options, serving).contextSize ?? DEFAULT_CONTEXT_SIZE, contextLength);
}

/** The same by its facts alone. */
export function toLimits(options: ModelOptions, serving: ServingOptions, facts: ModelFacts): ContextLimits {
  const { maxSequences, kvTokens, maxBatchTokens, threads } = limitsOf(options, serving);
  const contextSize = contextSizeOf(options, serving, facts.contextLength);
  const isSmall = options.slidingWindow === 'window' && facts.supportsSmallWindow;
  const layOut = serving.deterministic ? ownCells : isSmall ? smallWindows : cacheLayout;
  const prefixSlots = isSmall ? 0 : facts.state.stateBytes > 0 ? STATE_PREFIX_SLOTS : PREFIX_SLOTS;
  const isKept =
    facts.supportsSmallWindow && !isSmall && maxSequences <= MOST_KEPT && maxBatchTokens <= PASS_TOKENS;
  const most = Math.min(isKept ? MOST_KEPT : MAX_SLOTS, maxSequences + prefixSlots);
  const state = stateLayout(isKept ? { ...facts.state, checkpointSize: 0 } : facts.state, most, options);
  return {
    ...layOut(facts, contextSize, state.slotCount, kvTokens),
    ...state,
    ...(serving.prefixCache ? {} : { checkpointBytes: 0 }),
    ...(serving.deterministic ? { isDeterministic: true } : {}),
    ...(serving.speculation === false ? {} : { hasDraftHead: true }),
    batchTokens: maxBatchTokens,
    maxOutputs: outputRows(facts.vocabSize, maxSequences),
    threads: threads ?? defaultThreads(facts.isTiny),
  };
}

/** Rows of logits that a step may hold: one for each that runs, and as many as `SCORE_BYTES` hold to score a prompt with. */
function outputRows(vocabSize: number, maxRunning: number): number {
  return Math.max(
    maxRunning + MIN_SCORE_ROWS,
    Math.min(MAX_SCORE_ROWS, Math.floor(SCORE_BYTES / (4 * vocabSize))),
  );
}
