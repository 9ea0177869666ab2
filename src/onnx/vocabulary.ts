/** A `tokenizer.json` -> the bytes of every token, and which tokens are special. */
import { isObject } from '../common/index.ts';

/** The parts of the file that are read here. */
export type TokenizerFile = {
  readonly added_tokens?: readonly { id: number; content: string; special: boolean }[];
  readonly pre_tokenizer?: Part | null;
  readonly decoder?: Part | null;
  readonly model?: {
    readonly type?: string;
    readonly vocab?: Readonly<Record<string, number>> | readonly (readonly [string, number])[];
    readonly continuing_subword_prefix?: string | null;
  };
};

type Part = { readonly type?: string } & Readonly<Record<string, unknown>>;

/** All tokens of a vocabulary. */
export type TokenTable = {
  readonly bytes: readonly Uint8Array[]; // (vocabulary) empty where an id has no token
  readonly special: ReadonlySet<number>;
};

const isId = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

/** Checks the content of a `tokenizer.json`. `fail` throws an error with the fault and the expected value. */
export function toTokenizerFile(
  value: Readonly<Record<string, unknown>>,
  fail: (reason: string) => never,
): TokenizerFile {
  const demand = (isRight: boolean, path: string, expected: string, got: unknown): void => {
    if (!isRight) fail(`${path}: expected ${expected}, got ${JSON.stringify(got)?.slice(0, 100)}`);
  };
  const { added_tokens: added = [], model } = value;
  demand(Array.isArray(added), 'added_tokens', 'a list', added);
  for (const [i, token] of (added as unknown[]).entries()) {
    const isToken = isObject(token) && isId(token['id']) && typeof token['content'] === 'string';
    demand(isToken, `added_tokens.${i}`, 'an object with id and content', token);
  }
  for (const part of ['pre_tokenizer', 'decoder']) demandPart(value[part], part, demand);
  if (!isObject(model)) return fail('model: expected an object');
  const { vocab = {} } = model;
  if (Array.isArray(vocab))
    for (const [i, entry] of vocab.entries())
      demand(
        Array.isArray(entry) && typeof entry[0] === 'string',
        `model.vocab.${i}`,
        'a piece and its score',
        entry,
      );
  else {
    demand(isObject(vocab), 'model.vocab', 'an object or a list', vocab);
    for (const [token, id] of Object.entries(vocab as object))
      demand(isId(id), `model.vocab.${token}`, 'an id', id);
  }
  return value as TokenizerFile;
}

/** Checks a part, which may be a list of parts. */
function demandPart(
  part: unknown,
  path: string,
  demand: (isRight: boolean, path: string, expected: string, got: unknown) => void,
): void {
  demand(part === undefined || part === null || isObject(part), path, 'an object', part);
  for (const list of ['decoders', 'pretokenizers'])
    for (const [i, inner] of [(part as Part | null | undefined)?.[list] ?? []].flat().entries())
      demandPart(inner ?? 'null', `${path}.${list}.${i}`, demand);
}

const encoder = new TextEncoder();
const EMPTY = new Uint8Array(0);

/** Reads a vocabulary of `size` tokens. The graph may have more or fewer tokens than the file. */
export function readTokens(file: TokenizerFile, size: number): TokenTable {
  const bytes: Uint8Array[] = Array.from({ length: size }, () => EMPTY);
  const vocabulary = file.model?.vocab ?? {};
  const entries: Iterable<readonly [string, number]> = Array.isArray(vocabulary)
    ? (vocabulary as readonly (readonly [string, number])[]).map(([text], id) => [text, id] as const)
    : Object.entries(vocabulary as Record<string, number>);
  const toBytes = spelling(file);
  for (const [text, id] of entries) if (id < size) bytes[id] = toBytes(text);
  const special = new Set<number>();
  for (const token of file.added_tokens ?? []) {
    if (token.id >= size) continue;
    bytes[token.id] = encoder.encode(token.content);
    if (token.special) special.add(token.id);
  }
  return { bytes, special };
}

/** Returns the decoding of the file's token texts to bytes. */
function spelling({ model, decoder, pre_tokenizer: before }: TokenizerFile): (text: string) => Uint8Array {
  if (hasPart(decoder, 'ByteLevel') || hasPart(before, 'ByteLevel')) return fromByteLevel;
  const prefix = model?.continuing_subword_prefix;
  if (model?.type === 'WordPiece' || hasPart(decoder, 'WordPiece'))
    return (text) =>
      encoder.encode(text.startsWith(prefix ?? '##') ? text.slice((prefix ?? '##').length) : ` ${text}`);
  return fromPieces;
}

function hasPart(part: Part | null | undefined, type: string): boolean {
  if (!part) return false;
  const inner = [part['decoders'], part['pretokenizers']].flatMap((list) =>
    Array.isArray(list) ? list : [],
  );
  return part.type === type || inner.some((one: Part) => hasPart(one, type));
}

/** Decodes a piece, in which `▁` is a space and `<0x0A>` is a byte that has no piece. */
function fromPieces(text: string): Uint8Array {
  const byte = /^<0x([0-9A-Fa-f]{2})>$/.exec(text);
  return byte ? Uint8Array.of(Number.parseInt(byte[1]!, 16)) : encoder.encode(text.replaceAll('▁', ' '));
}

const byteOfCharacter = new Map<number, number>();

/** Byte-level vocabularies write each byte as a printable character: its own one, or the next free one from U+0100 on. */
function fromByteLevel(text: string): Uint8Array {
  if (byteOfCharacter.size === 0) {
    let free = 256;
    for (let byte = 0; byte < 256; byte++) {
      const isPrintable = (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
      byteOfCharacter.set(isPrintable ? byte : free++, byte);
    }
  }
  const bytes: number[] = [];
  for (const character of text) {
    const byte = byteOfCharacter.get(character.codePointAt(0)!);
    if (byte === undefined)
      bytes.push(...encoder.encode(character)); // a token that was added without byte encoding
    else bytes.push(byte);
  }
  return Uint8Array.from(bytes);
}
