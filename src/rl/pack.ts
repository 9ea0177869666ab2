/** Token sequences with advantages -> rows for the trainer, in which sequences of one group share their common prompt. */
import { OnpolicyError } from '../errors.ts';
import { checkArguments, type PackedRow } from '../protocol/index.ts';
import type { SequenceExperts, TokenSequence } from './tokens.ts';

/** A sequence with the advantage and weight of its trained tokens. */
export type WeightedSequence = TokenSequence & {
  /** Sequences of one group may share a prompt. */
  readonly group: number;
  readonly advantage: number;
  readonly weight: number;
  /** Sequences of one unit are in one row, and its number becomes their `sequenceIds`. Absent if each sequence is independent. */
  readonly unit?: number | undefined;
};

/** A row with the inputs of the loss for each target. */
export type TrainingRow = {
  readonly row: PackedRow;
  // These columns are in shared memory.
  readonly oldLogprobs: Float64Array; // (targets) NaN if unknown
  readonly advantages: Float64Array; // (targets)
  readonly weights: Float64Array; // (targets)
  readonly sequenceIds: Int32Array; // (targets)
  /** Observation tokens. Their targets follow those of the loss in the row. Absent if there are none. */
  readonly observations?:
    | {
        readonly weights: Float64Array; // (observation targets)
        readonly sequenceIds: Int32Array; // (observation targets)
      }
    | undefined;
};

/** Rows, and how many sequences were truncated to fit into one. */
export type Packing = { readonly rows: TrainingRow[]; readonly truncatedCount: number };

/** Rows are at least this long, unless the model's context is shorter, so that the answers to one prompt fit. */
const ROW_STEP = 2048;

/** Returns the default length of a row: the length of the longest sequence or unit, rounded up, within the model's context. */
export function defaultRowLength(
  sequences: readonly Pick<WeightedSequence, 'tokens' | 'unit'>[],
  contextSize: number,
): number {
  checkArguments('RowLengthArguments', { sequences, contextSize });
  const lengths = new Map<number, number>(); // of units
  let longest = 1;
  for (const { tokens, unit } of sequences) {
    const length = tokens.length + (unit === undefined ? 0 : (lengths.get(unit) ?? 0));
    if (unit !== undefined) lengths.set(unit, length);
    longest = Math.max(longest, length);
  }
  const rounded = Math.ceil(longest / ROW_STEP) * ROW_STEP;
  return contextSize > 0 ? Math.min(rounded, contextSize) : rounded;
}

/** Packs the sequences in order, each into the first row with room. Sequences without trained or observation tokens are left out. */
export function packRows(sequences: readonly WeightedSequence[], rowLength: number): Packing {
  checkArguments('PackArguments', { sequences, rowLength });
  const isLong = (sequence: WeightedSequence) => sequence.tokens.length > rowLength;
  const fitting = sequences
    .map((sequence) => (isLong(sequence) ? truncate(sequence, rowLength) : sequence))
    .filter(
      ({ isTrained, observationWeights }) => isTrained.includes(1) || observationWeights?.some(Boolean),
    );
  const builders: RowBuilder[] = [];
  for (const [group, members] of byGroup(fitting)) {
    const prefixLength = sharedPrefixLength(members);
    for (const unit of byUnit(members)) {
      const fits = (row: RowBuilder) => row.sizeWith(group, unit, prefixLength) <= rowLength;
      const home = builders.find(fits);
      const builder = home ?? new RowBuilder();
      if (!home) builders.push(builder);
      if (!fits(builder)) throw tooShort(builder.sizeWith(group, unit, prefixLength), rowLength);
      for (const sequence of unit) builder.push(group, sequence, prefixLength);
    }
  }
  return {
    rows: builders.map((builder) => builder.build()),
    truncatedCount: sequences.filter(isLong).length,
  };
}

function truncate(sequence: WeightedSequence, length: number): WeightedSequence {
  return {
    ...sequence,
    tokens: sequence.tokens.subarray(0, length),
    isTrained: sequence.isTrained.subarray(0, length),
    logprobs: sequence.logprobs.subarray(0, length),
    temperatures: sequence.temperatures?.subarray(0, length),
    observationWeights: sequence.observationWeights?.subarray(0, length),
    experts: sequence.experts && {
      ...sequence.experts,
      ids: sequence.experts.ids.subarray(0, length * sequence.experts.width),
    },
  };
}

function byGroup(sequences: readonly WeightedSequence[]): Map<number, WeightedSequence[]> {
  const groups = new Map<number, WeightedSequence[]>();
  for (const sequence of sequences) {
    const members = groups.get(sequence.group);
    if (members) members.push(sequence);
    else groups.set(sequence.group, [sequence]);
  }
  return groups;
}

/** Groups sequences that must be in one row, in their order. */
function byUnit(members: readonly WeightedSequence[]): WeightedSequence[][] {
  const units: WeightedSequence[][] = [];
  for (const sequence of members) {
    const last = units.at(-1);
    if (last && sequence.unit !== undefined && last[0]!.unit === sequence.unit) last.push(sequence);
    else units.push([sequence]);
  }
  return units;
}

function tooShort(needed: number, rowLength: number): OnpolicyError {
  return new OnpolicyError(
    'INVALID_REQUEST',
    `packed_sequence_length: expected at least ${needed} for answers that are compared in one row, got ${rowLength}`,
    { param: 'experimental_config.packed_sequence_length' },
  );
}

/** Returns the number of leading untrained tokens that all members have in common. Returns 0 for a single member. */
function sharedPrefixLength(members: readonly WeightedSequence[]): number {
  const [first, ...others] = members;
  if (!first || others.length === 0) return 0;
  let length = members.reduce(
    (least, { isTrained }) => (isTrained.includes(1) ? Math.min(least, isTrained.indexOf(1)) : least),
    first.tokens.length,
  );
  for (const { tokens } of others)
    for (let i = 0; i < length; i++) if (tokens[i] !== first.tokens[i]) length = i;
  return length;
}

/** A part of a sequence in a row: its tokens `from` to `to`, placed at `at`. */
type Span = {
  readonly sequence: WeightedSequence;
  readonly from: number;
  readonly to: number;
  readonly at: number;
  readonly id: number;
  readonly parent: number;
};

/** A sequence of a row, whose trained tokens are targets. */
type Member = {
  readonly sequence: WeightedSequence;
  readonly sequenceId: number;
  /** Returns the position in the row of a token. */
  readonly placeOf: (i: number) => number;
};

/**
 * Places sequences in one row, and then fills its columns once, each at its size. Group ids within a row: one for each shared prefix and one
 * for each sequence.
 */
class RowBuilder {
  readonly #spans: Span[] = [];
  readonly #members: Member[] = [];
  /** Experts of the tokens from `at` on. */
  readonly #experts: (SequenceExperts & { readonly at: number })[] = [];
  /** Prefixes of this row by group: their id and position. */
  readonly #prefixes = new Map<number, { readonly id: number; readonly start: number }>();
  #length = 0;
  #targetCount = 0;
  #observationCount = 0;
  #nextId = 0;

  /** Returns the row's length after adding the sequences. */
  sizeWith(group: number, sequences: readonly WeightedSequence[], prefixLength: number): number {
    const known = this.#prefixes.has(group) ? prefixLength : 0;
    const sum = sequences.reduce((length, { tokens }) => length + tokens.length - prefixLength, 0);
    return this.#length + sum + prefixLength - known;
  }

  push(group: number, sequence: WeightedSequence, prefixLength: number): void {
    const prefix = prefixLength > 0 ? this.#prefixOf(group, sequence, prefixLength) : null;
    const id = this.#nextId++;
    const start = this.#length - prefixLength; // position of token 0 if the prefix were right before the rest
    this.#append(sequence, prefixLength, sequence.tokens.length, id, prefix?.id ?? id);
    const placeOf = (i: number) => (prefix && i < prefixLength ? prefix.start + i : start + i);
    const sequenceId = sequence.unit ?? this.#members.length;
    this.#members.push({ sequence, sequenceId, placeOf });
    for (let i = 1; i < sequence.tokens.length; i++) if (sequence.isTrained[i]) this.#targetCount += 1;
    for (const weight of sequence.observationWeights?.subarray(1) ?? [])
      if (weight !== 0) this.#observationCount += 1;
  }

  #prefixOf(group: number, sequence: WeightedSequence, length: number) {
    const known = this.#prefixes.get(group);
    if (known) {
      this.#takeExperts(sequence, 0, length, known.start);
      return known;
    }
    const prefix = { id: this.#nextId++, start: this.#length };
    this.#append(sequence, 0, length, prefix.id, prefix.id);
    this.#prefixes.set(group, prefix);
    return prefix;
  }

  #append(sequence: WeightedSequence, from: number, to: number, id: number, parent: number): void {
    this.#takeExperts(sequence, from, to, this.#length);
    this.#spans.push({ sequence, from, to, at: this.#length, id, parent });
    this.#length += to - from;
  }

  #takeExperts({ experts }: WeightedSequence, from: number, to: number, at: number): void {
    if (!experts) return;
    const { width, ids } = experts;
    this.#experts.push({ at, width, ids: ids.subarray(from * width, to * width) });
  }

  /** Returns the experts of the row's tokens. A token of a shared prefix gets those of the first sequence that has them. */
  #routedExperts(): Int32Array | undefined {
    const width = this.#experts[0]?.width;
    if (width === undefined) return undefined;
    const joined = new Int32Array(this.#length * width).fill(-1);
    for (const { at, ids } of this.#experts)
      for (const [i, id] of ids.entries()) if (joined[at * width + i] === -1) joined[at * width + i] = id;
    return joined;
  }

  build(): TrainingRow {
    const allTargets = this.#targetCount + this.#observationCount;
    const row = {
      tokens: new Int32Array(this.#length),
      positions: new Int32Array(this.#length),
      groupIds: new Int32Array(this.#length),
      parentIds: new Int32Array(this.#length),
      logitRows: new Int32Array(allTargets),
      targetTokens: new Int32Array(allTargets),
    };
    const temperatures = new Float32Array(allTargets).fill(1);
    let isTempered = false;
    const oldLogprobs = sharedNumbers(this.#targetCount);
    const advantages = sharedNumbers(this.#targetCount);
    const weights = sharedNumbers(this.#targetCount);
    const sequenceIds = new Int32Array(new SharedArrayBuffer(4 * this.#targetCount));
    for (const { sequence, from, to, at, id, parent } of this.#spans) {
      row.tokens.set(sequence.tokens.subarray(from, to), at);
      for (let i = from; i < to; i++) row.positions[at + i - from] = i;
      row.groupIds.fill(id, at, at + to - from);
      row.parentIds.fill(parent, at, at + to - from);
    }
    let target = 0;
    for (const { sequence, sequenceId, placeOf } of this.#members)
      for (let i = 1; i < sequence.tokens.length; i++) {
        if (!sequence.isTrained[i]) continue;
        row.logitRows[target] = placeOf(i - 1);
        row.targetTokens[target] = sequence.tokens[i]!;
        const temperature = sequence.temperatures?.[i] ?? 1;
        temperatures[target] = temperature;
        isTempered ||= temperature !== 1;
        oldLogprobs[target] = sequence.logprobs[i]!;
        advantages[target] = sequence.advantage;
        weights[target] = sequence.weight;
        sequenceIds[target++] = sequenceId;
      }
    const observations = this.#observations(row);
    const routedExperts = this.#routedExperts();
    return {
      row: {
        ...row,
        ...(isTempered ? { temperatures } : {}),
        ...(routedExperts ? { routedExperts } : {}),
      },
      oldLogprobs,
      advantages,
      weights,
      sequenceIds,
      ...(observations ? { observations } : {}),
    };
  }

  /** Fills in the targets that are observations, after the others. */
  #observations({ logitRows, targetTokens }: PackedRow): TrainingRow['observations'] {
    if (this.#observationCount === 0) return undefined;
    const weights = new Float64Array(this.#observationCount);
    const sequenceIds = new Int32Array(this.#observationCount);
    let next = 0;
    for (const { sequence, sequenceId, placeOf } of this.#members)
      for (let i = 1; i < sequence.tokens.length; i++) {
        const weight = sequence.observationWeights?.[i] ?? 0;
        if (weight === 0) continue;
        logitRows[this.#targetCount + next] = placeOf(i - 1);
        targetTokens[this.#targetCount + next] = sequence.tokens[i]!;
        weights[next] = weight;
        sequenceIds[next++] = sequenceId;
      }
    return { weights, sequenceIds };
  }
}

/** Returns zeros in memory that the thread of the loss reads in place. */
export function sharedNumbers(count: number): Float64Array {
  return new Float64Array(new SharedArrayBuffer(8 * count));
}
