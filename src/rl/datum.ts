/** Data as clients of training runs send it, and the name of a loss -> packed rows and the loss of each. */
import { type ErrorDetail, errorAt } from '../errors.ts';
import {
  checkArguments,
  type Datum,
  fault,
  type PackedRow,
  type RunDataRequest,
  throwFaults,
  tokenIdFaults,
} from '../protocol/index.ts';
import type { LossPool } from './loss-pool.ts';
import { rowGradient } from './row-gradient.ts';
import { completeSettings, needsReference, resolveSettings, type TrainingSettings } from './settings.ts';
import type { ForwardScores, RowLoss } from './steps.ts';

type LossName = NonNullable<RunDataRequest['loss_fn']>;
type ColumnName = keyof Datum['loss_fn_inputs'];

/** What the loss of a row adds to its number of tokens before it divides by it. */
const EPSILON = 1e-6;

/** Rows take this many tokens unless a datum has more. */
const ROW_LENGTH = 2048;

/** One row of several data, and where each of its targets comes from. */
export type DataRow = {
  readonly row: PackedRow;
  readonly datumOf: Int32Array; // (targets)
  readonly positionOf: Int32Array; // (targets) in the datum's column of targets
};

/** Data ready for a trainer. */
export type DataPlan = {
  readonly rows: readonly DataRow[];
  /** Shape of each datum's targets: its length, and how many there are for a position if these are several. */
  readonly shapes: readonly (readonly number[])[];
  /** The loss of a row, and its gradient. */
  readonly lossOf: (row: DataRow, scores: ForwardScores) => RowLoss | Promise<RowLoss>;
};

type Sequence = {
  readonly tokens: readonly number[];
  readonly columns: { readonly [Name in ColumnName]?: readonly number[] };
};

/**
 * Checks data and packs it.
 * @param isWhole every position is a target, not only those that the loss counts
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
  throwFaults(sequences.flatMap((sequence, i) => sequenceFaults(sequence, i, settings, model)));
  const counts = (sequence: Sequence, i: number): boolean => isWhole || isCounted(sequence, i, settings);
  const rows = packData(sequences, counts, model.contextSize);
  const isMean = name === 'policy';
  const divisor = {
    tokens: isMean ? rows.reduce((sum, { row }) => sum + row.targetTokens.length, 0) : 1,
    data: isMean ? rows.reduce((sum, { datumOf }) => sum + new Set(datumOf).size, 0) : 1,
  };
  return {
    rows,
    shapes: sequences.map((sequence) => {
      const width = widthOf(sequence);
      return width > 1 ? [sequence.tokens.length, width] : [sequence.tokens.length];
    }),
    lossOf: (row, scores) =>
      settings === null
        ? crossEntropy(row, sequences, scores)
        : policyGradient(row, sequences, scores, settings, divisor, lossPool),
  };
}

/** Null: cross-entropy, which has none. */
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
  const { preference_loss, routing } = settings;
  if (routing === 'replay')
    throwFaults([fault([...CONFIG_PATH, 'routing'], 'unsupported', '"own" or null', routing)]);
  if (preference_loss !== null)
    throwFaults([fault([...CONFIG_PATH, 'preference_loss'], 'unsupported', 'null', preference_loss)]);
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

const COLUMNS: readonly ColumnName[] = [
  'target_tokens',
  'weights',
  'logprobs',
  'advantages',
  'ref_logprobs',
  'original_logprobs',
];

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
  return [
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

/** Targets of each position. Cross-entropy may have several, each with its weight. */
function widthOf({ tokens, columns }: Sequence): number {
  const width = columns.target_tokens!.length / tokens.length;
  return Number.isInteger(width) && width > 0 ? width : 1;
}

/** Whether the loss depends on a target. */
function isCounted({ columns }: Sequence, i: number, settings: TrainingSettings | null): boolean {
  if ((columns.weights?.[i] ?? 1) === 0) return false;
  const isPulled = settings?.objective === 'dro' || (settings !== null && needsReference(settings));
  return settings === null || isPulled || columns.advantages![i] !== 0;
}

/** Sequences in their order, as many in a row as it has room for. None sees another. */
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

/** A column of the row's targets. */
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

/** The sum of -weight x log-probability. */
function crossEntropy(row: DataRow, sequences: readonly Sequence[], { logprobs }: ForwardScores): RowLoss {
  const weights = columnOf(row, sequences, 'weights', 1);
  let loss = 0;
  for (const [i, weight] of weights.entries()) if (weight !== 0) loss -= weight * logprobs[i]!;
  return { loss, gradient: Float32Array.from(weights, (weight) => -weight), metrics: {} };
}

/** The sum of the tokens' losses, undivided or over those of all rows. */
function policyGradient(
  row: DataRow,
  sequences: readonly Sequence[],
  { logprobs, entropies }: ForwardScores,
  settings: TrainingSettings,
  divisor: { readonly tokens: number; readonly data: number },
  lossPool: LossPool,
): Promise<RowLoss> {
  const read = (name: ColumnName, standard = Number.NaN) => columnOf(row, sequences, name, standard);
  const has = (name: ColumnName) => sequences.some(({ columns }) => columns[name]);
  const inRow = new Set(row.datumOf).size;
  const scale =
    settings.loss_length === null ? (logprobs.length + EPSILON) / divisor.tokens : inRow / divisor.data;
  const columns = {
    new_logprobs: logprobs,
    old_logprobs: read('logprobs'),
    original_logprobs: has('original_logprobs') ? read('original_logprobs') : null,
    ref_logprobs: has('ref_logprobs') ? read('ref_logprobs') : null,
    advantages: read('advantages'),
    weights: read('weights', 1),
    sequence_ids: row.datumOf,
    entropies,
  };
  return rowGradient(columns, settings, scale, lossPool);
}
