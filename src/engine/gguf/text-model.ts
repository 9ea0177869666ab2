/**
 * The headers of a text model's files -> nothing, or an error about values that the engine cannot compute with. Shapes and missing tensors
 * are not checked here, because the engine checks them.
 */
import {
  COMPANIONS,
  DIVISORS,
  SECTIONED,
  SINGLE_EXPERT,
  UNTURNED,
  WKV_IN_UNITS,
  WKV_UNIT,
} from './architectures.ts';
import { ASSISTANT, checkAssistant } from './assistant.ts';
import { checkEagle } from './eagle.ts';
import type { GgufHeader } from './header.ts';
import { checkTensorTypes } from './matrix-types.ts';
import { checkVocabulary } from './vocabulary.ts';

const MAX_LAYERS = 512;
const MAX_EXPERTS = 1024;
const MAX_SIZE = 2 ** 24;
const RANK_POOLING = 4;
/** The engine's value for "unspecified": -1 as an unsigned number. */
const UNSPECIFIED = 2 ** 32 - 1;
/** Tensor that computes a score for each label. The engine reads as many scores as there are labels. */
const LABEL_HEAD = 'cls.output.weight';
const EPSILONS = ['layer_norm_epsilon', 'layer_norm_rms_epsilon', 'group_norm_epsilon'];
const ROPE_SCALINGS = ['none', 'linear', 'yarn', 'longrope'];

/**
 * Checks a text model, which answers or makes embeddings. `parts` are its files in order.
 * @throws OnpolicyError `MODEL_INVALID`, naming the file and the key or tensor
 */
export async function checkTextModel(parts: readonly GgufHeader[]): Promise<void> {
  const header = parts[0]!;
  const architecture = header.need('general.architecture', header.text('general.architecture'));
  if (![...header.values.keys()].some((key) => key.startsWith(`${architecture}.`)))
    header.refuse('general.architecture', 'one that other keys of the file begin with', architecture);
  if (parts.every(({ tensors }) => tensors.size === 0))
    header.fail('it holds no weights (a vocabulary-only file)');
  const model = new Settings(header);
  const layers = model.need('block_count', { min: 1, max: MAX_LAYERS });
  const isAssistant = architecture === ASSISTANT;
  if (isAssistant) checkAssistant(header);
  else model.number('nextn_predict_layers', { max: layers - 1 });
  const width = model.need('embedding_length', { min: 1, max: MAX_SIZE });
  model.need('context_length', { min: 1 });
  const pooling = model.number('pooling_type') ?? UNSPECIFIED;
  if (pooling > RANK_POOLING && pooling !== UNSPECIFIED)
    model.refuse('pooling_type', `a number from 0 to ${RANK_POOLING}`, pooling);
  const labels = header.values.get(model.nameOf('classifier.output_labels'));
  const count = labels?.type === 'array' ? labels.value.count : 0;
  if (pooling === RANK_POOLING && count > 1 && !parts.some(({ tensors }) => tensors.has(LABEL_HEAD)))
    model.refuse('classifier.output_labels', `at most one without ${LABEL_HEAD}`, count);
  for (const key of EPSILONS) model.number(`attention.${key}`, { type: 'f32', min: 0 });
  for (const [key, architectures] of Object.entries(DIVISORS))
    if (architectures.test(architecture)) model.number(key, { min: 1 });
  const groups = model.number('ssm.group_count') ?? 0;
  const ranks = model.number('ssm.time_step_rank') ?? 0;
  if (DIVISORS['ssm.group_count']!.test(architecture) && ranks % groups !== 0)
    model.refuse('ssm.time_step_rank', `a multiple of the ${groups} groups`, ranks);
  checkHeads(model, { layers, width, isAttending: parts.some(hasAttention) });
  checkExperts(model, layers);
  const head = model.number('wkv.head_size') ?? 0;
  if (head > 0 && width % head !== 0) model.refuse('wkv.head_size', `a divisor of ${width}`, head);
  if (WKV_IN_UNITS.test(architecture) && head % WKV_UNIT !== 0)
    model.refuse('wkv.head_size', `a multiple of ${WKV_UNIT}`, head);
  const isFirst = (name: string): boolean => name.startsWith('blk.0.');
  if (!parts.some(({ tensors }) => [...tensors.keys()].some(isFirst)))
    header.refuse('blk.0', 'tensors of the first layer', 'none');
  if (!isAssistant) checkOutput(model, parts, width);
  checkCompanions(parts, architecture);
  for (const part of parts) checkTensorTypes(part);
  await checkVocabulary(header);
  if (architecture === 'eagle3') await checkEagle(header);
}

class Settings {
  readonly header: GgufHeader;

  constructor(header: GgufHeader) {
    this.header = header;
  }

  nameOf(key: string): string {
    return `${this.header.architecture}.${key}`;
  }

  number(key: string, rule?: Parameters<GgufHeader['number']>[1]): number | undefined {
    return this.header.number(this.nameOf(key), rule);
  }

  need(key: string, rule?: Parameters<GgufHeader['number']>[1]): number {
    return this.header.need(this.nameOf(key), this.number(key, rule));
  }

  /** Returns the numbers of all layers. The file has one number for all, or one for each. */
  perLayer(key: string, layers: number, max: number): number[] | undefined {
    const name = this.nameOf(key);
    if (this.header.values.get(name)?.type !== 'array') {
      const one = this.number(key, { max });
      return one === undefined ? undefined : Array<number>(layers).fill(one);
    }
    const found = Array.from(this.header.array(name, ['u32', 'i32', 'bool'], layers)!.numbers);
    const wrong = found.find((value) => value < 0 || value > max);
    if (wrong !== undefined) this.header.refuse(name, `numbers from 0 to ${max}`, wrong);
    return found;
  }

  refuse(key: string, expected: string, found: unknown): never {
    return this.header.refuse(this.nameOf(key), expected, found);
  }
}

function hasAttention({ tensors }: GgufHeader): boolean {
  return [...tensors.keys()].some((name) => name.endsWith('.attn_output.weight'));
}

function checkHeads(
  model: Settings,
  { layers, width, isAttending }: { layers: number; width: number; isAttending: boolean },
): void {
  const heads = model.perLayer('attention.head_count', layers, MAX_SIZE) ?? Array<number>(layers).fill(0);
  const kvHeads = model.perLayer('attention.head_count_kv', layers, MAX_SIZE) ?? heads;
  if (isAttending && Math.max(...heads) === 0) model.refuse('attention.head_count', 'at least 1', 0);
  const uneven = heads.findIndex((count, layer) => kvHeads[layer]! > 0 && count % kvHeads[layer]! !== 0);
  if (uneven >= 0)
    model.refuse('attention.head_count_kv', `a divisor of the ${heads[uneven]} heads`, kvHeads[uneven]);
  model.header.text(model.nameOf('rope.scaling.type'), ROPE_SCALINGS);
  const own = Math.floor(width / (heads[0] || 1));
  const keySize = model.number('attention.key_length', { max: MAX_SIZE }) ?? own;
  model.number('attention.value_length', { max: MAX_SIZE });
  if (heads[0] === 0 || UNTURNED.test(model.header.architecture)) return; // nothing is rotated
  const turned = checkRotations(model, 'rope.dimension_count', [keySize, keySize]);
  const keySizeOfWindows = model.number('attention.key_length_swa', { max: MAX_SIZE }) ?? keySize;
  checkRotations(model, 'rope.dimension_count_swa', [keySizeOfWindows, turned]);
  const sections = model.perLayer('rope.dimension_sections', 4, keySize) ?? [0, 0, 0, 0];
  const sum = sections.reduce((total, size) => total + size, 0);
  if (SECTIONED.test(model.header.architecture) && (sum > keySize || sum === sections[3]))
    model.refuse(
      'rope.dimension_sections',
      `four sizes of ${keySize} together at most, one of the first three above 0`,
      sections.join(', '),
    );
}

/** Checks how many numbers of a head are rotated, in pairs. `otherwise` is the count if the file does not say. */
function checkRotations(
  model: Settings,
  key: string,
  [keySize, otherwise]: readonly [number, number],
): number {
  const count = model.number(key) ?? otherwise;
  if (count === 0 || count % 2 !== 0 || count > keySize)
    // With a count of 0 the engine's loop would never end.
    model.refuse(key, `an even number from 2 to ${keySize}, the size of a head`, count);
  return count;
}

function checkExperts(model: Settings, layers: number): void {
  const count = model.number('expert_count', { max: MAX_EXPERTS }) ?? 0;
  const used = model.perLayer('expert_used_count', layers, 2 ** 32) ?? [0];
  const groups = model.number('expert_group_count') ?? 0;
  const usedGroups = model.number('expert_group_used_count') ?? 0;
  if (count <= 1 && SINGLE_EXPERT.test(model.header.architecture)) return;
  const most = Math.max(...used);
  if (most > count || (count > 0 && most === 0))
    model.refuse(
      'expert_used_count',
      count > 0 ? `from 1 to the ${count} experts` : '0 without experts',
      most,
    );
  const isSized = model.number('expert_feed_forward_length', { type: ['u32', 'array'] }) !== undefined;
  if (count > 0 && used[0] === 0 && !isSized)
    model.refuse('expert_feed_forward_length', 'a number, as the first layer uses no expert', 'none');
  if (groups > 0 && (groups >= count || (groups > 1 && count % groups !== 0)))
    model.refuse('expert_group_count', `a divisor of the ${count} experts`, groups);
  if (groups > 1 && (usedGroups === 0 || usedGroups >= groups))
    model.refuse('expert_group_used_count', `from 1 to ${groups - 1}`, usedGroups);
}

function checkCompanions(parts: readonly GgufHeader[], architecture: string): void {
  const names = new Set(parts.flatMap(({ tensors }) => [...tensors.keys()]));
  for (const [architectures, tensor, needed] of COMPANIONS) {
    if (!architectures.test(architecture)) continue;
    for (const name of names) {
      const block = new RegExp(`^(blk\\.\\d+\\.)${tensor}\\.weight$`).exec(name)?.[1];
      const nameOf = (other: string): string => `${block}${other}${other.includes('.') ? '' : '.weight'}`;
      const missing =
        block && needed.find((either) => !either.split('|').some((other) => names.has(nameOf(other))));
      if (missing) parts[0]!.refuse(nameOf(missing), `a tensor beside ${name}`, 'none');
    }
  }
}

/** If the output vectors are longer than the states, a tensor of that size must compute them. */
function checkOutput(model: Settings, parts: readonly GgufHeader[], width: number): void {
  const size = model.number('embedding_length_out') ?? 0;
  const most = width * Math.max(model.number('hyper_connection.count', { max: MAX_SIZE }) ?? 0, 1);
  const isMade = (name: string): boolean => parts.some((part) => part.tensors.get(name)?.shape[1] === size);
  if (size > most && !isMade('dense_2.weight') && !isMade('dense_3.weight'))
    model.refuse('embedding_length_out', `at most ${most}, the size of states`, size);
}
