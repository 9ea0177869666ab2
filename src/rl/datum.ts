/** Data as clients of training runs send it, and the name of a loss -> packed rows and the loss of each. */
import { type ErrorDetail, errorAt } from '../errors.ts';
import {
  checkArguments,
  type Datum,
  fault,
  LARGEST_LOGPROB,
  type PackedRow,
  type RunDataRequest,
  throwFaults,
  tokenIdFaults,
} from '../protocol/index.ts';
import type { LossPool } from './loss-pool.ts';
import { rowGradient } from './row-gradient.ts';
import { completeSettings, needsReference, resolveSettings, type TrainingSettings } from './settings.ts';
import { needsScores, type StepTotals, stepTotals } from './step-totals.ts';
import type { ForwardScores, RowLoss } from './steps.ts';

type LossName = NonNullable<RunDataRequest['loss_fn']>;
type ColumnName = keyof Datum['loss_fn_inputs'];

/** Rows take this many tokens unless a datum has more. */
const ROW_LENGTH = 2048;

/** One row of several data, and the origin of each of its targets. */
export type DataRow = {
  readonly row: PackedRow;
  readonly datumOf: Int32Array; // (targets)
  readonly positionOf: Int32Array; // (targets) in the datum's column of targets
};

/** Data ready for a trainer. */
export type DataPlan = {
  readonly rows: readonly DataRow[];
  /** Shape of each datum's targets: its length, and the number of targets per position if there are several. */
  readonly shapes: readonly (readonly number[])[];
  /**
   * Computes the values that the losses need of all rows together. Called before the first loss. `score`: runs a forward pass of each row.
   */
  readonly begin: (score: () => Promise<ForwardScores[]>) => Promise<void>;
  /** Returns the loss of a row, and its gradient. */
  readonly lossOf: (row: DataRow, scores: ForwardScores) => RowLoss | Promise<RowLoss>;
};

type Sequence = {
  readonly tokens: readonly number[];
  readonly columns: { readonly [Name in ColumnName]?: readonly number[] };
};

/**
 * Checks data and packs it.
 * @param isWhole true if every position is a target, even if the loss does not count it
 */
export function planData(
  { data, loss_fn, loss_fn_config }: Pick<RunDataRequest, 'data' | 'loss_fn' | 'loss_fn_config'>,
  model: { readonly vocabSize: number; readonly contextSize: number },
  lossPool: LossPool,
  isWhole: boolean,
): DataPlan {
  const name = loss_fn ?? 'cross_entropy';
  const settings = settingsOf(name, loss_fn_config ?? {});
  const sequences = data.map(readDatum);
  throwFaults(data.flatMap(shapeFaults));
  throwFaults(sequences.flatMap((sequence, i) => sequenceFaults(sequence, i, settings, model)));
  const counts = (sequence: Sequence, i: number): boolean => isWhole || isCounted(sequence, i, settings);
  const rows = packData(sequences, counts, model.contextSize);
  // `policy` is a mean over the tokens of all rows, the other losses are sums.
  const isMean = name === 'policy';
  const divisor = settings && isMean ? meanDivisor(rows, settings) : 1;
  let totals: StepTotals = { divisor, referenceGap: null, entropyLimit: null, center: null };
  return {
    rows,
    shapes: sequences.map((sequence) => {
      const width = widthOf(sequence);
      return width > 1 ? [sequence.tokens.length, width] : [sequence.tokens.length];
    }),
    begin: async (score) => {
      if (settings === null || rows.length < 2 || !needsScores(settings)) return;
      const scores = await score();
      const columns = rows.map((row, i) => policyColumns(row, sequences, scores[i]!));
      const ids = rows.map(({ datumOf }) => datumOf);
      totals = { ...stepTotals(ids, settings, columns), divisor };
    },
    lossOf: (row, scores) =>
      settings === null
        ? crossEntropy(row, sequences, scores)
        : rowGradient(policyColumns(row, sequences, scores), settings, totals, lossPool),
  };
}

/** Returns null for cross-entropy, which has no settings. */
function settingsOf(
  name: LossName,
  config: NonNullable<RunDataRequest['loss_fn_config']>,
): TrainingSettings | null {
  const known = CONFIG_FIELDS[name];
  for (const field of Object.keys(config))
    if (!known.includes(field))
      throw errorAt(`loss_fn_config.${field}`, 'INVALID_REQUEST', `not a setting of ${name}`);
  const number = (field: string, standard: number): number => {
    const value = config[field] ?? standard;
    if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value;
    throwFaults([fault(['loss_fn_config', field], 'range', 'a number >= 0', value)]);
    return standard;
  };
  switch (name) {
    case 'cross_entropy':
      return null;
    case 'importance_sampling':
      return completeSettings({ objective: 'importance_sampling' });
    case 'ppo':
    case 'cispo':
      return completeSettings({
        objective: name,
        epsilon: 1 - number('clip_low_threshold', 0.8),
        epsilon_high: number('clip_high_threshold', 1.2) - 1,
      });
    case 'dro':
      return completeSettings({ objective: 'dro', dro_beta: number('beta', 0.05) });
    case 'policy':
      return policySettings(config['experimental_config'] ?? null);
    default:
      return name satisfies never;
  }
}

function policySettings(config: unknown): TrainingSettings {
  const settings = resolveSettings(checkArguments('ExperimentalConfig', config, CONFIG_PATH) ?? null);
  const { preference_loss, routing, observation_weights } = settings;
  if (routing === 'replay')
    throwFaults([fault([...CONFIG_PATH, 'routing'], 'unsupported', '"own" or null', routing)]);
  if (preference_loss !== null)
    throwFaults([fault([...CONFIG_PATH, 'preference_loss'], 'unsupported', 'null', preference_loss)]);
  if (observation_weights !== null) {
    const expected = 'null: data have no messages; their observations are targets of cross_entropy';
    throwFaults([
      fault([...CONFIG_PATH, 'observation_weights'], 'unsupported', expected, observation_weights),
    ]);
  }
  return settings;
}

const CONFIG_PATH = ['loss_fn_config', 'experimental_config'];
const CONFIG_FIELDS: Readonly<Record<LossName, readonly string[]>> = {
  cross_entropy: [],
  importance_sampling: [],
  ppo: ['clip_low_threshold', 'clip_high_threshold'],
  cispo: ['clip_low_threshold', 'clip_high_threshold'],
  dro: ['beta'],
  policy: ['experimental_config'],
};

function readDatum({ model_input, loss_fn_inputs }: Datum): Sequence {
  const columns: { [Name in ColumnName]?: readonly number[] } = {};
  for (const name of COLUMNS) {
    const given = loss_fn_inputs[name];
    if (given !== undefined) columns[name] = 'data' in given ? given.data : given;
  }
  return { tokens: model_input.chunks.flatMap(({ tokens }) => tokens), columns };
}

/** Returns the columns whose `shape` does not match their numbers. */
function shapeFaults({ loss_fn_inputs }: Datum, index: number): ErrorDetail[] {
  return Object.entries(loss_fn_inputs).flatMap(([name, given]) => {
    if (given === undefined || !('data' in given)) return [];
    const { data, shape } = given as { readonly data: readonly number[]; readonly shape?: unknown };
    if (shape === undefined || shape === null) return [];
    const isRight =
      Array.isArray(shape) &&
      shape.length > 0 &&
      shape.every((size) => Number.isInteger(size) && size >= 0) &&
      shape.reduce((product: number, size: number) => product * size, 1) === data.length;
    if (isRight) return [];
    const loc = ['data', String(index), 'loss_fn_inputs', name, 'shape'];
    return [
      fault(loc, 'value', `sizes whose product is ${data.length}, the number of entries of data`, shape),
    ];
  });
}

const COLUMNS: readonly ColumnName[] = [
  'target_tokens',
  'weights',
  'logprobs',
  'advantages',
  'ref_logprobs',
  'original_logprobs',
];

const LOGPROBS: readonly ColumnName[] = ['logprobs', 'ref_logprobs', 'original_logprobs'];

function sequenceFaults(
  { tokens, columns }: Sequence,
  index: number,
  settings: TrainingSettings | null,
  { vocabSize, contextSize }: { readonly vocabSize: number; readonly contextSize: number },
): ErrorDetail[] {
  const input = ['data', String(index), 'model_input'];
  const loc = ['data', String(index), 'loss_fn_inputs'];
  const needed: readonly ColumnName[] = settings
    ? [
        'logprobs',
        'advantages',
        ...(needsReference(settings) ? (['ref_logprobs'] as const) : []),
        ...(settings.sampler_correction ? (['original_logprobs'] as const) : []),
      ]
    : [];
  const length = tokens.length;
  const width = settings ? 1 : widthOf({ tokens, columns });
  const tooLikely = LOGPROBS.flatMap((name) => {
    const i = columns[name]?.findIndex((value) => value > LARGEST_LOGPROB) ?? -1;
    return i < 0
      ? []
      : [fault([...loc, name, String(i)], 'range', 'a log-probability, at most 0', columns[name]![i])];
  });
  return [
    ...tooLikely,
    ...(length === 0 || (contextSize > 0 && length > contextSize)
      ? [fault(input, 'length', `1 to ${contextSize} tokens`, length)]
      : []),
    ...tokenIdFaults([...input, 'tokens'], tokens, vocabSize),
    ...tokenIdFaults([...loc, 'target_tokens'], columns.target_tokens ?? [], vocabSize),
    ...needed.flatMap((name) =>
      columns[name] ? [] : [fault([...loc, name], 'missing', 'numbers, which this loss needs', undefined)],
    ),
    ...Object.entries(columns).flatMap(([name, column]) =>
      column.length === (name === 'weights' || name === 'target_tokens' ? length * width : length)
        ? []
        : [fault([...loc, name], 'length', `${length} entries, one per token`, column.length)],
    ),
  ];
}

/** Returns the number of targets per position. Cross-entropy may have several, each with a weight. */
function widthOf({ tokens, columns }: Sequence): number {
  const width = columns.target_tokens!.length / tokens.length;
  return Number.isInteger(width) && width > 0 ? width : 1;
}

/** Returns true if the loss depends on a target. */
function isCounted({ columns }: Sequence, i: number, settings: TrainingSettings | null): boolean {
  if ((columns.weights?.[i] ?? 1) === 0) return false;
  const isPulled = settings?.objective === 'dro' || (settings !== null && needsReference(settings));
  return settings === null || isPulled || columns.advantages![i] !== 0;
}

/** Packs sequences in order, as many per row as fit. Sequences do not see each other. */
function packData(
  sequences: readonly Sequence[],
  counts: (sequence: Sequence, i: number) => boolean,
  contextSize: number,
): DataRow[] {
  const rows: DataRow[] = [];
  const most = contextSize > 0 ? Math.min(ROW_LENGTH, contextSize) : ROW_LENGTH;
  for (let first = 0; first < sequences.length; ) {
    let end = first + 1;
    let length = sequences[first]!.tokens.length;
    while (end < sequences.length && length + sequences[end]!.tokens.length <= most)
      length += sequences[end++]!.tokens.length;
    const row = toRow(sequences, first, end, counts);
    if (row.row.targetTokens.length > 0) rows.push(row);
    first = end;
  }
  return rows;
}

function toRow(
  sequences: readonly Sequence[],
  first: number,
  end: number,
  counts: (sequence: Sequence, i: number) => boolean,
): DataRow {
  const [tokens, positions, groups]: number[][] = [[], [], []];
  const [logitRows, targets, data, places]: number[][] = [[], [], [], []];
  for (let datum = first; datum < end; datum++) {
    const sequence = sequences[datum]!;
    const start = tokens!.length;
    for (const [i, token] of sequence.tokens.entries()) {
      tokens!.push(token);
      positions!.push(i);
      groups!.push(datum - first);
      const width = widthOf(sequence);
      for (let place = i * width; place < (i + 1) * width; place++) {
        if (!counts(sequence, place)) continue;
        logitRows!.push(start + i);
        targets!.push(sequence.columns.target_tokens![place]!);
        data!.push(datum);
        places!.push(place);
      }
    }
  }
  const groupIds = Int32Array.from(groups!);
  return {
    row: {
      tokens: Int32Array.from(tokens!),
      positions: Int32Array.from(positions!),
      groupIds,
      parentIds: groupIds,
      logitRows: Int32Array.from(logitRows!),
      targetTokens: Int32Array.from(targets!),
    },
    datumOf: Int32Array.from(data!),
    positionOf: Int32Array.from(places!),
  };
}

/** Returns a column of the row's targets. */
function columnOf(
  { datumOf, positionOf }: DataRow,
  sequences: readonly Sequence[],
  name: ColumnName,
  standard: number,
): Float64Array {
  return Float64Array.from(
    datumOf,
    (datum, i) => sequences[datum]!.columns[name]?.[positionOf[i]!] ?? standard,
  );
}

/** Returns the sum of -weight x log-probability. */
function crossEntropy(row: DataRow, sequences: readonly Sequence[], { logprobs }: ForwardScores): RowLoss {
  const weights = columnOf(row, sequences, 'weights', 1);
  let loss = 0;
  for (const [i, weight] of weights.entries()) if (weight !== 0) loss -= weight * logprobs[i]!;
  return {
    loss,
    gradient: Float32Array.from(weights, (weight) => -weight),
    tally: { means: {}, correlations: {} },
  };
}

/** Returns the number of tokens of all rows, or the number of data times `loss_length`. */
function meanDivisor(rows: readonly DataRow[], { loss_length }: TrainingSettings): number {
  if (loss_length === null) return rows.reduce((sum, { row }) => sum + row.targetTokens.length, 0);
  return loss_length * rows.reduce((sum, { datumOf }) => sum + new Set(datumOf).size, 0);
}

/** Returns the columns of the policy loss. */
function policyColumns(row: DataRow, sequences: readonly Sequence[], { logprobs, entropies }: ForwardScores) {
  const read = (name: ColumnName, standard = Number.NaN) => columnOf(row, sequences, name, standard);
  const has = (name: ColumnName) => sequences.some(({ columns }) => columns[name]);
  return {
    new_logprobs: logprobs,
    old_logprobs: read('logprobs'),
    original_logprobs: has('original_logprobs') ? read('original_logprobs') : null,
    ref_logprobs: has('ref_logprobs') ? read('ref_logprobs') : null,
    advantages: read('advantages'),
    weights: read('weights', 1),
    sequence_ids: row.datumOf,
    entropies,
  };
}
