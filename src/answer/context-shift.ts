/**
 * A sequence that has filled its context -> the same one without its oldest tokens, computed again. So it goes on with any model, adapter and
 * cache, and its tokens are those that a request with the tokens that are left would give.
 */
import { type Engine, type Group, type Listener, Sequence } from '../engine/index.ts';
import type { SampledRows } from '../native/index.ts';
import type { Choice } from './choice.ts';

/** What stays when a context is full. */
export type ContextShift = {
  /** Leading tokens that are never dropped. */
  readonly keep: number;
  readonly contextSize: number;
  /** Tokens of the prompt that were dropped. */
  readonly dropped: number;
};

/** The sequence that a choice has now. */
export type Place = { sequence: Sequence };

/**
 * How many tokens behind the first `keep` are dropped, so that one more fits: none, or whole blocks of half the rest. The next turn of a
 * chat then mostly drops the same ones, and finds what is left in the cache.
 */
export function tokensToDrop(
  length: number,
  { keep, contextSize }: Pick<ContextShift, 'keep' | 'contextSize'>,
): number {
  const tooMany = length + 1 - contextSize;
  if (tooMany <= 0) return 0;
  const block = Math.floor((contextSize - keep) / 2);
  return Math.ceil(tooMany / block) * block;
}

/** The tokens without those that are dropped. */
export function withoutDropped(tokens: Int32Array, keep: number, dropped: number): Int32Array {
  if (dropped === 0) return tokens.slice();
  const left = new Int32Array(tokens.length - dropped);
  left.set(tokens.subarray(0, keep));
  left.set(tokens.subarray(keep + dropped), keep);
  return left;
}

/** Passes tokens on. When the context is full, another sequence goes on with those that are left. */
export function shifting(
  engine: Engine,
  place: Place,
  choice: Choice,
  listener: Listener,
  shift: ContextShift,
): Listener {
  let forced = 0; // tokens of the row that are still to come
  const shifted: Listener = {
    onToken(token, rows, row, isFinal) {
      forced = forced > 0 ? forced - 1 : forcedIn(rows, row);
      if (listener.onToken(token, rows, row, isFinal)) return true;
      if (forced > 0 || place.sequence.length < shift.contextSize) return false;
      const { sequence } = place;
      const dropped = tokensToDrop(sequence.length, shift);
      const prompt = withoutDropped(sequence.tokens(0, sequence.length), shift.keep, dropped);
      choice.droppedTokens += dropped;
      place.sequence = follow(sequence, { ...sequence.group, prompt }, shift.contextSize);
      engine.submit(place.sequence, shifted);
      return true; // of the one before
    },
    onComplete: () => listener.onComplete(),
    onError: (error) => listener.onError(error),
  };
  return shifted;
}

/** What goes on where a sequence has ended. Nothing drafts for it. */
function follow(before: Sequence, group: Group, contextSize: number): Sequence {
  const maxOutputs = Math.min(before.maxOutputs, contextSize - group.prompt.length);
  const next = new Sequence(group, before.index, before.sampler, { maxOutputs });
  next.matcher = before.matcher;
  next.outputsBeforeForced = before.outputsBeforeForced;
  next.cachedTokens = before.cachedTokens;
  Object.assign(next.times, before.times, { counted: 0, hasStarted: true });
  return next;
}

function forcedIn({ forced }: SampledRows, row: number): number {
  return forced ? forced.offsets[row + 1]! - forced.offsets[row]! : 0;
}
