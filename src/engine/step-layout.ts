/** A plan of the scheduler -> the arrays of one step, in the layout of the backend. */
import type { RowEdit, Step } from './backend/index.ts';
import type { DraftColumns, StepMedia, TakenExperts } from './native/index.ts';
import type { Entry, Plan } from './plan.ts';
import type { GroupMedia, LogitsEditor, Sequence } from './sequence.ts';

/** Lays a plan out in the arrays that the backend takes. */
export function toStep({ adapter, entries, edits, isSteady }: Plan): Step {
  let total = 0;
  const followed = entries
    .filter(({ sequence }) => sequence.speculation?.isFollowed)
    .map(({ sequence }) => sequence.place.slot);
  const sampled: Sequence[] = [];
  for (const { count, samples, drafts } of entries) {
    total += count + drafts.length;
    sampled.push(...samples);
    for (let i = 0; i < drafts.length; i++) sampled.push(samples[0]!);
  }
  const step = {
    adapter,
    memoryEdits: Int32Array.from(edits),
    tokens: new Int32Array(total),
    positions: new Int32Array(total),
    sequences: new Int32Array(total),
    ...(followed.length > 0 ? { followed: Int32Array.from(followed) } : {}),
    sampleRows: new Int32Array(sampled.length),
    rowEdits: [] as RowEdit[],
    samplers: sampled.map((sequence) => sequence.sampler),
    ...(sampled.some(({ matcher }) => matcher) ? { matchers: sampled.map(({ matcher }) => matcher) } : {}),
    ...(sampled.some(({ speculation }) => speculation) ? { drafts: toDraftColumns(sampled) } : {}),
    scoreRows: new Int32Array(3 * entries.reduce((rows, entry) => rows + scoredRows(entry), 0)),
    media: [] as StepMedia[],
    mayRunAhead: isSteady && entries.every(isPredictable),
    ...(entries.some(({ sequence }) => sequence.experts) ? { recordsExperts: true } : {}),
  };
  let at = 0;
  let row = 0;
  let scored = 0;
  for (const entry of entries) {
    const { sequence, start, count, samples: samplers, drafts } = entry;
    if (scoredRows(entry) > 0) {
      const rows = sequence.promptScores!.layOut(start, start + count, at);
      step.scoreRows.set(rows, scored);
      scored += rows.length;
    }
    step.tokens.set(sequence.tokens(start, start + count), at);
    step.tokens.set(drafts, at + count);
    const end = at + count + drafts.length;
    step.sequences.fill(sequence.place.slot, at, end);
    const { media } = sequence.group;
    const first = media ? media.layout.positionOf(start) : start;
    for (let i = 0; at + i < end; i++) step.positions[at + i] = first + i;
    if (media && start < sequence.group.prompt.length) step.media.push(...toMedia(media, entry, at));
    at += count;
    for (const sequence of samplers) {
      if (sequence.hook) step.rowEdits.push(toRowEdit(sequence, sequence.hook, row));
      step.sampleRows[row++] = at - 1;
    }
    for (const draft of drafts) {
      step.drafts!.drafted[row] = draft;
      step.sampleRows[row++] = at++;
    }
  }
  const { media, ...text } = step;
  return media.length === 0 ? text : { ...step, mayRunAhead: false };
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

const NO_LIMITS: readonly number[] = [0, 0, 0];

/** Returns the columns of samples without drafts. */
function toDraftColumns(sampled: readonly Sequence[]): DraftColumns {
  return {
    drafted: new Int32Array(sampled.length).fill(-1),
    drafters: sampled.map(({ speculation }) => speculation?.drafter ?? null),
    limits: Int32Array.from(sampled.flatMap(({ speculation }) => speculation?.limits ?? NO_LIMITS)),
  };
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
