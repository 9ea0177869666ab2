/** Token sequences with advantages -> rows for the trainer, in which sequences of one group share their common prompt. */
import type { TokenSequence } from './tokens.ts';
import type { PackedRow } from './trainer.ts';

/** A sequence and what its trained tokens are worth. */
export type WeightedSequence = TokenSequence & {
  /** Sequences of one group may share a prompt. */
  readonly group: number;
  readonly advantage: number;
  readonly weight: number;
};

/** A row, and per target what the loss needs. */
export type TrainingRow = {
  readonly row: PackedRow;
  readonly oldLogprobs: Float64Array; // (targets) NaN: unknown
  readonly advantages: Float64Array; // (targets)
  readonly weights: Float64Array; // (targets)
  readonly sequenceIds: Int32Array; // (targets)
};

/** Rows, and how many sequences had to be cut to fit into one. */
export type Packing = { readonly rows: TrainingRow[]; readonly truncatedCount: number };

/** Rows are at least this long unless the model's context is shorter: long enough for the answers to one prompt. */
const ROW_STEP = 2048;

/** The default length of a row: that of the longest sequence rounded up, within the model's context. */
export function defaultRowLength(sequences: readonly TokenSequence[], contextSize: number): number {
  const longest = sequences.reduce((most, { tokens }) => Math.max(most, tokens.length), 1);
  const rounded = Math.ceil(longest / ROW_STEP) * ROW_STEP;
  return contextSize > 0 ? Math.min(rounded, contextSize) : rounded;
}

/** Packs the sequences in order, each into the first row with room. Sequences that train nothing are left out. */
export function packRows(sequences: readonly WeightedSequence[], rowLength: number): Packing {
  const isLong = (sequence: WeightedSequence) => sequence.tokens.length > rowLength;
  const fitting = sequences
    .map((sequence) => (isLong(sequence) ? truncate(sequence, rowLength) : sequence))
    .filter(({ isTrained }) => isTrained.includes(1));
  const builders: RowBuilder[] = [];
  for (const [group, members] of byGroup(fitting)) {
    const prefixLength = sharedPrefixLength(members);
    for (const sequence of members) {
      const home = builders.find((row) => row.sizeWith(group, sequence, prefixLength) <= rowLength);
      const builder = home ?? new RowBuilder();
      if (!home) builders.push(builder);
      builder.push(group, sequence, prefixLength);
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

/** Leading tokens that all members have in common and none is trained on. 0 for a member alone. */
function sharedPrefixLength(members: readonly WeightedSequence[]): number {
  const [first, ...others] = members;
  if (!first || others.length === 0) return 0;
  let length = members.reduce(
    (least, { isTrained }) => Math.min(least, isTrained.indexOf(1)),
    first.tokens.length,
  );
  for (const { tokens } of others)
    for (let i = 0; i < length; i++) if (tokens[i] !== first.tokens[i]) length = i;
  return length;
}

/** Gathers one row's columns. Group ids within a row: one for each shared prefix and one for each sequence. */
class RowBuilder {
  readonly #tokens: number[] = [];
  readonly #positions: number[] = [];
  readonly #groupIds: number[] = [];
  readonly #parentIds: number[] = [];
  readonly #logitRows: number[] = [];
  readonly #targetTokens: number[] = [];
  readonly #oldLogprobs: number[] = [];
  readonly #advantages: number[] = [];
  readonly #weights: number[] = [];
  readonly #sequenceIds: number[] = [];
  /** Prefixes of this row: by group, their id and where they lie. */
  readonly #prefixes = new Map<number, { readonly id: number; readonly start: number }>();
  #nextId = 0;
  #sequenceCount = 0;

  /** The row's length if the sequence were added. */
  sizeWith(group: number, sequence: WeightedSequence, prefixLength: number): number {
    const shared = this.#prefixes.has(group) ? prefixLength : 0;
    return this.#tokens.length + sequence.tokens.length - shared;
  }

  push(group: number, sequence: WeightedSequence, prefixLength: number): void {
    const prefix = prefixLength > 0 ? this.#prefixOf(group, sequence, prefixLength) : null;
    const id = this.#nextId++;
    const start = this.#tokens.length - prefixLength; // where token 0 would lie, were the prefix right before the rest
    this.#append(sequence, prefixLength, sequence.tokens.length, id, prefix?.id ?? id);
    const placeOf = (i: number) => (prefix && i < prefixLength ? prefix.start + i : start + i);
    for (let i = 1; i < sequence.tokens.length; i++) {
      if (!sequence.isTrained[i]) continue;
      this.#logitRows.push(placeOf(i - 1));
      this.#targetTokens.push(sequence.tokens[i]!);
      this.#oldLogprobs.push(sequence.logprobs[i]!);
      this.#advantages.push(sequence.advantage);
      this.#weights.push(sequence.weight);
      this.#sequenceIds.push(this.#sequenceCount);
    }
    this.#sequenceCount++;
  }

  #prefixOf(group: number, sequence: WeightedSequence, length: number) {
    const known = this.#prefixes.get(group);
    if (known) return known;
    const prefix = { id: this.#nextId++, start: this.#tokens.length };
    this.#append(sequence, 0, length, prefix.id, prefix.id);
    this.#prefixes.set(group, prefix);
    return prefix;
  }

  #append(sequence: WeightedSequence, from: number, to: number, id: number, parent: number): void {
    for (let i = from; i < to; i++) {
      this.#tokens.push(sequence.tokens[i]!);
      this.#positions.push(i);
      this.#groupIds.push(id);
      this.#parentIds.push(parent);
    }
  }

  build(): TrainingRow {
    return {
      row: {
        tokens: Int32Array.from(this.#tokens),
        positions: Int32Array.from(this.#positions),
        groupIds: Int32Array.from(this.#groupIds),
        parentIds: Int32Array.from(this.#parentIds),
        logitRows: Int32Array.from(this.#logitRows),
        targetTokens: Int32Array.from(this.#targetTokens),
      },
      oldLogprobs: Float64Array.from(this.#oldLogprobs),
      advantages: Float64Array.from(this.#advantages),
      weights: Float64Array.from(this.#weights),
      sequenceIds: Int32Array.from(this.#sequenceIds),
    };
  }
}
