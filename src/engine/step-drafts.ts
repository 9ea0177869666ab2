/**
 * The entries of a step and the drafts that their sequences want -> the entries with the drafts that the step checks, in the order in
 * which it computes them.
 *
 * With recurrent state the engine computes a step in passes. One pass takes sequences that have as many tokens to compute; under a
 * non-unified KV cache their slots are also neighbours. It moves the states of its sequences side by side, and states of other sequences
 * out of their way. The older states, to which wrong drafts are taken back, stay where they are and are lost. So all drafts of a step
 * have to be in its last pass of several sequences.
 */
import { type BackendLimits, PASS_TOKENS } from './backend/index.ts';
import { type Entry, NO_DRAFTS, tokensIn } from './plan.ts';
import type { Slots } from './slots.ts';

/** Slots that have drafts, in the order in which the step computes them, and how many each has. */
type DraftPass = { readonly slots: readonly number[]; readonly length: number };

/** Adds drafts to entries: at most this many, and as many as the cache has room for. */
export function addDrafts(
  entries: readonly Entry[],
  most: number,
  slots: Pick<Slots, 'roomBehind' | 'append'>,
  { rollbackTokens, isKvUnified }: Pick<BackendLimits, 'rollbackTokens' | 'isKvUnified'>,
): Entry[] {
  const hasState = rollbackTokens !== Infinity;
  const wanted = entries.map((entry) => wantedBy(entry, most));
  if (!hasState && wanted.every(({ length }) => length === 0)) return [...entries].sort(bySlot);
  let left = most;
  const withDrafts = (entry: Entry, drafts: Int32Array, least: number): Entry => {
    const count = Math.min(drafts.length, left);
    const room = count > 0 ? slots.roomBehind(entry.sequence, count) : 0;
    if (room < least) return entry;
    slots.append(entry.sequence, room);
    left -= room;
    return { ...entry, drafts: drafts.subarray(0, room) };
  };
  if (!hasState) return entries.map((entry, i) => withDrafts(entry, wanted[i]!, 1)).sort(bySlot);

  const canDraft = isKvUnified || entries.every(({ count }) => count === 1);
  const lengths = new Map<number, number>(); // by slot
  for (const [i, { sequence, count }] of entries.entries())
    if (canDraft && count === 1 && wanted[i]!.length > 0)
      lengths.set(sequence.place.slot, slots.roomBehind(sequence, wanted[i]!.length));
  const pass = chooseDraftPass(lengths, most, isKvUnified);
  const places = new Map(pass.slots.map((slot, place) => [slot, place]));
  const place = ({ sequence, drafts }: Entry): number =>
    drafts.length > 0 ? places.get(sequence.place.slot)! : -1;
  return entries
    .map((entry, i) =>
      places.has(entry.sequence.place.slot)
        ? withDrafts(entry, wanted[i]!.subarray(0, pass.length), pass.length)
        : entry,
    )
    .sort((a, b) => place(a) - place(b) || tokensIn(a) - tokensIn(b) || bySlot(a, b));
}

function bySlot(a: Entry, b: Entry): number {
  return a.sequence.place.slot - b.sequence.place.slot;
}

function wantedBy({ sequence, samples }: Entry, most: number): Int32Array {
  const { speculation, place, outputsLeft } = sequence;
  if (!speculation || place.slot < 0 || samples.length !== 1) return NO_DRAFTS;
  return speculation.wanted(Math.min(most, outputsLeft - 1));
}

/**
 * Chooses the slots with drafts and their common number of drafts so that the step checks as many drafts as it can.
 * @param lengths The drafts that each slot can have.
 * @param most The drafts that the step can have.
 */
export function chooseDraftPass(
  lengths: ReadonlyMap<number, number>,
  most: number,
  isKvUnified: boolean,
): DraftPass {
  let best: DraftPass = { slots: [], length: 0 };
  for (let length = 1; length <= Math.max(0, ...lengths.values()); length++) {
    const long = [...lengths.keys()].filter((slot) => lengths.get(slot)! >= length).sort((a, b) => a - b);
    const count = Math.floor(Math.min(most / length, PASS_TOKENS / (length + 1)));
    const slots = (isKvUnified ? long : withOneRun(long)).slice(0, count);
    if (length * slots.length > best.length * best.slots.length) best = { slots, length };
  }
  return best;
}

/** Returns the longest run of neighbours, then all slots without a neighbour: a pass of one sequence moves no state. */
function withOneRun(slots: readonly number[]): number[] {
  const runs: number[][] = [];
  for (const slot of slots)
    if (runs.at(-1)?.at(-1) === slot - 1) runs.at(-1)!.push(slot);
    else runs.push([slot]);
  const longest = runs.reduce<number[]>((best, run) => (run.length > best.length ? run : best), []);
  return [...longest, ...runs.filter((run) => run.length === 1 && run !== longest).flat()];
}
