/** The header of a text model -> nothing, or an error about a vocabulary that its tokenizer cannot use. */
import { setImmediate } from 'node:timers/promises';
import type { GgufHeader } from './header.ts';

const KEY = 'tokenizer.ggml';
/** Number of tokens after which other work of the process gets a turn. */
const TURN = 2 ** 14;

/** Defaults of a kind of tokenizer: ids of the tokens at the ends of a text, and if it adds them. */
type Kind = {
  readonly bos?: number;
  readonly eos?: number;
  readonly separator?: number;
  readonly addsBos?: boolean;
  readonly addsEos?: boolean;
  /** Overrides the value in the file. */
  readonly isAdded?: boolean;
};

const BPE: Kind = { bos: 11, eos: 11, addsBos: true };
const KINDS: Readonly<Record<string, Kind>> = {
  llama: { bos: 1, eos: 2, addsBos: true },
  gpt2: BPE,
  hybriddna: BPE,
  whitespace: BPE,
  bert: { bos: 101, separator: 102, isAdded: true },
  t5: { eos: 1, addsEos: true },
  gemma4: { addsBos: true, isAdded: true },
  rwkv: {},
  plamo2: {},
};

/** @throws OnpolicyError `MODEL_INVALID` */
export async function checkVocabulary(header: GgufHeader): Promise<void> {
  const model = header.need(`${KEY}.model`, header.text(`${KEY}.model`, Object.keys(KINDS)));
  const tokens = header.need(`${KEY}.tokens`, header.array(`${KEY}.tokens`, 'string'));
  if (tokens.count === 0) header.refuse(`${KEY}.tokens`, 'at least one token', 0);
  checkEnds(header, KINDS[model]!, tokens.count);
  checkCharsMap(header);
  const ids = new Map<string, number>();
  for (const bytes of tokens.texts()) {
    const id = ids.size;
    const text = engineText(bytes, id);
    const other = ids.get(text);
    if (other !== undefined)
      header.refuse(
        `${KEY}.tokens`,
        'each text once',
        `${JSON.stringify(bytes.toString())} as token ${other} and ${id}`,
      );
    ids.set(text, id);
    if (id % TURN === TURN - 1) await setImmediate();
  }
}

/** Returns the name by which the engine distinguishes tokens: the bytes up to a zero, or a name made of the id. */
function engineText(bytes: Buffer, id: number): string {
  const end = bytes.indexOf(0);
  const text = bytes.toString('latin1', 0, end < 0 ? bytes.length : end);
  return text === '' ? `[EMPTY_${id}]` : text;
}

/** Checks that the tokens that are added to a text exist. */
function checkEnds(header: GgufHeader, kind: Kind, count: number): void {
  const need = (name: string, otherwise: number | undefined): void => {
    const key = `${KEY}.${name}_token_id`;
    const id = header.number(key);
    const isThere = [id, otherwise].some((one) => one !== undefined && one < count);
    if (!isThere) header.refuse(key, `one of the ${count} tokens, as it is added to a text`, id ?? 'none');
  };
  const adds = (name: string, otherwise = false): boolean =>
    kind.isAdded === true
      ? otherwise
      : (header.number(`${KEY}.add_${name}_token`, { type: 'bool' }) ?? Number(otherwise)) !== 0;
  if (kind.separator !== undefined) {
    need('bos', kind.bos);
    need('seperator', kind.separator); // as the format spells it
  } else if (kind.bos !== undefined || kind.eos !== undefined || kind.addsBos) {
    if (adds('bos', kind.addsBos)) need('bos', kind.bos);
    if (adds('eos', kind.addsEos)) need('eos', kind.eos);
  }
}

/** Checks the character replacements: a table with its size in front, then texts that each end with a zero. */
function checkCharsMap(header: GgufHeader): void {
  const key = `${KEY}.precompiled_charsmap`;
  const map = header.array(key, ['i8', 'u8']);
  if (map && map.numbers.at(-1) !== 0) header.refuse(key, 'texts that end with zeros', map.numbers.at(-1));
}
