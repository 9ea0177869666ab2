/** A plan of the scheduler -> the arrays of one step, in the layout of the backend. */
import type { RowEdit, Step } from './backend/index.ts';
import type { DraftColumns, StepMedia, TakenExperts } from './native/index.ts';
import { type Entry, type Plan, tokensIn } from './plan.ts';
import type { GroupMedia, LogitsEditor, Sequence } from './sequence.ts';

/** The arrays of a step while they are filled. */
type GrowingStep = { -readonly [Field in keyof Step]: Step[Field] };

/** Lays a plan out in the arrays that the backend takes. Runs in every step, so it makes few objects. */
export function toStep({ adapter, entries, edits, isSteady }: Plan): Step {
  const sampled: Sequence[] = [];
  const followed: number[] = [];
  const rowEdits: RowEdit[] = [];
  const media: StepMedia[] = [];
  let total = 0;
  let scored = 0;
  let isPredicted = isSteady;
  let recordsExperts = false;
  for (const entry of entries) {
    const { sequence, samples, drafts } = entry;
    total += tokensIn(entry);
    scored += scoredRows(entry);
    for (const sample of samples) sampled.push(sample);
    for (let i = 0; i < drafts.length; i++) sampled.push(samples[0]!);
    if (sequence.speculation?.isFollowed) followed.push(sequence.place.slot);
    isPredicted &&= isPredictable(entry);
    recordsExperts ||= sequence.experts !== null;
  }
  const step: GrowingStep = {
    adapter,
    memoryEdits: new Int32Array(edits),
    tokens: new Int32Array(total),
    positions: new Int32Array(total),
    sequences: new Int32Array(total),
    sampleRows: new Int32Array(sampled.length),
    rowEdits,
    samplers: sampled.map(({ sampler }) => sampler),
    scoreRows: new Int32Array(3 * scored),
    mayRunAhead: isPredicted,
  };
  if (followed.length > 0) step.followed = new Int32Array(followed);
  if (sampled.some(({ matcher }) => matcher)) step.matchers = sampled.map(({ matcher }) => matcher);
  if (sampled.some(({ speculation }) => speculation)) step.drafts = toDraftColumns(sampled);
  if (recordsExperts) step.recordsExperts = true;
  fill(step, entries, rowEdits, media);
  if (media.length > 0) Object.assign(step, { media, mayRunAhead: false });
  return step;
}

/** Writes the tokens and rows of each entry to the arrays of a step. */
function fill(
  { tokens, positions, sequences, sampleRows, scoreRows, drafts: columns }: GrowingStep,
  entries: readonly Entry[],
  rowEdits: RowEdit[],
  media: StepMedia[],
): void {
  let at = 0;
  let row = 0;
  let scored = 0;
  for (const entry of entries) {
    const { sequence, start, count, samples, drafts } = entry;
    if (scoredRows(entry) > 0) {
      const rows = sequence.promptScores!.layOut(start, start + count, at);
      scoreRows.set(rows, scored);
      scored += rows.length;
    }
    const { slot } = sequence.place;
    const { media: groupMedia, prompt } = sequence.group;
    const first = groupMedia ? groupMedia.layout.positionOf(start) : start;
    if (groupMedia && start < prompt.length) media.push(...toMedia(groupMedia, entry, at));
    sequence.copyTokens(start, count, tokens, at);
    for (let i = 0; i < count + drafts.length; i++) {
      if (i >= count) tokens[at + i] = drafts[i - count]!;
      positions[at + i] = first + i;
      sequences[at + i] = slot;
    }
    at += count;
    for (const sample of samples) {
      if (sample.hook) rowEdits.push(toRowEdit(sample, sample.hook, row));
      sampleRows[row++] = at - 1;
    }
    for (const draft of drafts) {
      columns!.drafted[row] = draft;
      sampleRows[row++] = at++;
    }
  }
}

/** The rows of an entry that lies in a medium; `at` is its place in the step. */
function toMedia({ layout, chunks }: GroupMedia, { start, count }: Entry, at: number): StepMedia[] {
  const index = layout.spanAt(start);
  if (index < 0) return [];
  const span = layout.spans[index]!;
  const { rows, planes, isNonCausal } = chunks[index]!;
  const skipped = start - span.start;
  const positions = new Int32Array(planes.length === 0 ? 0 : 4 * count);
  const origin = layout.positionOf(span.start);
  for (let plane = 0; 4 * count === positions.length && plane < 4; plane++)
    for (let i = 0; i < count; i++)
      positions[plane * count + i] = origin + planes[plane * span.count + skipped + i]!;
  return [{ at, count, rows, first: skipped, positions, isNonCausal }];
}

/** Returns true if only the next tokens of a sequence and its grammar decide whether it ends. */
function isPredictable({ sequence: { hook, outputsLeft, savedPrompt }, drafts }: Entry): boolean {
  return hook === null && outputsLeft > drafts.length + 1 && (!savedPrompt || savedPrompt.state !== null);
}

/** Returns the columns of samples without drafts. */
function toDraftColumns(sampled: readonly Sequence[]): DraftColumns {
  const limits = new Int32Array(3 * sampled.length);
  const drafters = sampled.map(({ speculation }, row) => {
    if (!speculation) return null;
    for (let last = 0; last < 3; last++) limits[3 * row + last] = speculation.limits[last]!;
    return speculation.drafter;
  });
  return { drafted: new Int32Array(sampled.length).fill(-1), drafters, limits };
}

function toRowEdit(sequence: Sequence, hook: LogitsEditor, sample: number): RowEdit {
  return { sample, row: () => hook.row(), edit: () => hook.edit(sequence.outputs()) };
}

/** Rows of a prompt's tokens that an entry scores. */
export function scoredRows({ sequence, start, count }: Entry): number {
  return sequence.promptScores?.rowsIn(start, start + count) ?? 0;
}

/** Gives sequences that record them the experts of their tokens in a step. */
export function recordExperts({ entries }: Plan, taken: TakenExperts): void {
  let at = 0;
  for (const { sequence, start, count, drafts } of entries) {
    sequence.experts?.put(start, count + drafts.length, taken, at);
    at += count + drafts.length;
  }
}
