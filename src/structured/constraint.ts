/** A specification and a vocabulary -> a compiled constraint with its matchers. Each specification is compiled once per vocabulary. */
import { Shared } from '../common/index.ts';
import { readHeader, tokenBytes } from '../engine/gguf/index.ts';
import type { Handle, NativeModel, NativeSpec } from '../engine/native/index.ts';
import { grammarAddon, loadAddon, onDisk, openLibraries } from '../engine/native/index.ts';
import { fromNative, OnpolicyError } from '../errors.ts';
import { CompileQueue } from './compile-queue.ts';
import { type CallerPaths, OWN_PATHS, toSpecError } from './spec-error.ts';
import type { Constraint, Matcher, StructuredOutputs, Vocabulary } from './types.ts';
import { checkStructuredOutputs, kindOf, toNativeSpec } from './validate.ts';

const compilations = new CompileQueue();
/** Size of the LRU cache of compiled constraints per vocabulary. */
const MAX_CACHED = 128;

const handles = new WeakMap<Vocabulary | Constraint, Handle>();
/** True once anything was compiled. Before that the grammar engine may be absent. */
let isUsed = false;
const caches = new WeakMap<Vocabulary, Map<string, Shared<Constraint>>>();

/**
 * Creates a vocabulary from token bytes. A string stands for its UTF-8 bytes. Special tokens never match text. Throws `INVALID_REQUEST`,
 * and `NATIVE_UNAVAILABLE` in a clone whose grammar engine is not built yet.
 */
export function createVocabulary(options: {
  readonly tokens: readonly (Uint8Array | string)[];
  readonly eosTokenIds: readonly number[];
  readonly specialTokenIds?: readonly number[];
}): Vocabulary {
  const { tokens, eosTokenIds, specialTokenIds = [] } = options;
  if (!Array.isArray(tokens)) throw new OnpolicyError('INVALID_REQUEST', 'tokens: expected a list');
  const parts = tokens.map((token, index) => {
    if (typeof token !== 'string' && !(token instanceof Uint8Array))
      throw new OnpolicyError('INVALID_REQUEST', `tokens[${index}]: expected a string or Uint8Array`);
    return Buffer.from(token as string);
  });
  const offsets = new Uint32Array(parts.length + 1);
  parts.forEach((part, index) => {
    offsets[index + 1] = offsets[index]! + part.length;
  });
  for (const id of [...eosTokenIds, ...specialTokenIds])
    if (!Number.isInteger(id) || id < 0 || id >= tokens.length)
      throw new OnpolicyError(
        'INVALID_REQUEST',
        `token id ${id}: expected an integer below ${tokens.length}`,
      );
  return wrapVocabulary(
    grammarAddon().createVocabulary(
      new Uint8Array(Buffer.concat(parts)),
      offsets,
      Int32Array.from(eosTokenIds),
      Int32Array.from(specialTokenIds),
    ),
  );
}

/**
 * Reads the vocabulary of a GGUF file and opens its tokenizer, without the weights.
 * @throws OnpolicyError `MODEL_NOT_FOUND`, or `MODEL_INVALID` for a damaged file and one without tokens
 */
export async function readVocabulary(ggufPath: string): Promise<Vocabulary> {
  return await whenRead(readVocabularyHandle(ggufPath));
}

/** @internal Reads the vocabulary of a GGUF file into an object of `grammar`, the addon that benches and fuzzers call directly. */
export async function readVocabularyHandle(ggufPath: string, grammar = grammarAddon()): Promise<Handle> {
  const { bytes, offsets, ends, specials } = await tokenBytes(await readHeader(ggufPath));
  // A vocabulary can make masks without a tokenizer, which the engine may not know.
  const tokenizer = await openTokenizer(ggufPath).catch(() => undefined);
  return await grammar.loadVocabulary(bytes, offsets, ends, specials, tokenizer);
}

async function openTokenizer(ggufPath: string): Promise<Handle> {
  await openLibraries('auto');
  return await loadAddon().openTokenizer(onDisk(ggufPath));
}

/** @internal Returns the vocabulary of a loaded GGUF model. */
export async function modelVocabulary(model: NativeModel): Promise<Vocabulary> {
  const grammar = grammarAddon();
  const tokens = loadAddon().modelTokens(model);
  return await whenRead(
    tokens.then(({ bytes, offsets, ends, specials, tokenizer }) =>
      grammar.loadVocabulary(bytes, offsets, ends, specials, tokenizer),
    ),
  );
}

async function whenRead(handle: Promise<Handle>): Promise<Vocabulary> {
  return wrapVocabulary(
    await handle.catch((error: unknown) => {
      throw fromNative(error);
    }),
  );
}

/**
 * Compiles a specification off the event loop. The same specification on the same vocabulary is compiled once. Rejects with
 * `INVALID_REQUEST` for a malformed and `UNSUPPORTED` for an unenforceable specification; `param` and `detail` name the field, the keyword
 * by its JSON pointer, and the offset in a text.
 */
export async function compileConstraint(
  spec: StructuredOutputs,
  vocabulary: Vocabulary,
): Promise<Constraint> {
  checkStructuredOutputs(spec);
  return await compileChecked(spec, vocabulary, OWN_PATHS);
}

/**
 * @internal Does the same for a specification that was checked. `paths`: the caller's paths, for errors. When `signal` fires, rejects with
 * its error, and stops the compilation if no other caller waits for it.
 */
export async function compileChecked(
  spec: StructuredOutputs,
  vocabulary: Vocabulary,
  paths: CallerPaths,
  signal?: AbortSignal,
): Promise<Constraint> {
  const vocabularyHandle = handles.get(vocabulary);
  if (!vocabularyHandle)
    throw new OnpolicyError(
      'INVALID_REQUEST',
      'vocabulary: expected one of createVocabulary or readVocabulary',
    );
  let cache = caches.get(vocabulary);
  if (!cache) {
    cache = new Map();
    caches.set(vocabulary, cache);
  }
  const native = toNativeSpec(spec);
  const key = keyOf(native);
  const cached = cache.get(key);
  const isNew = !cached || cached.isStopped;
  const compiling = isNew ? new Shared((stop) => compile(native, vocabularyHandle, stop)) : cached;
  cache.delete(key);
  cache.set(key, compiling);
  if (isNew)
    compiling.result.catch(() => {
      if (cache.get(key) === compiling) cache.delete(key);
    });
  if (cache.size > MAX_CACHED) cache.delete(cache.keys().next().value as string);
  try {
    return await compiling.wait(signal);
  } catch (error) {
    throw signal?.aborted ? error : toSpecError(error, spec, kindOf(spec), paths);
  }
}

/** Returns a key that is equal for equal specifications. Schemas are already JSON texts, which are not stringified again. */
function keyOf({ text, schemas, ...rest }: NativeSpec): string {
  return [JSON.stringify([rest, schemas.map(({ length }) => length)]), text, ...schemas].join('\n');
}

/** @internal Returns the native constraint behind a compiled one, for the engine's step loop. */
export function constraintHandle(constraint: Constraint): Handle {
  const handle = handles.get(constraint);
  if (!handle) throw new OnpolicyError('INVALID_REQUEST', 'constraint: expected one of compileConstraint');
  return handle;
}

/** @internal Returns how many masks of this process lack tokens because their work limit was reached. */
export function cutMasks(): number {
  return isUsed ? grammarAddon().cutMasks() : 0;
}

async function compile(native: NativeSpec, vocabulary: Handle, stop: AbortSignal): Promise<Constraint> {
  const grammar = grammarAddon();
  isUsed = true;
  const compiled = await compilations.run(
    (cancelled, work) => grammar.compileConstraint(native, vocabulary, cancelled, work),
    stop,
  );
  // Computes masks while the prompt is computed. If there is no memory for it, masks are computed when they are needed.
  grammar.warmUp(compiled.constraint).catch(() => {});
  const constraint: Constraint = {
    warnings: compiled.warnings,
    relaxed: compiled.relaxed,
    createMatcher: () => wrapMatcher(grammar.createMatcher(compiled.constraint)),
  };
  handles.set(constraint, compiled.constraint);
  return constraint;
}

function wrapVocabulary(handle: Handle): Vocabulary {
  const grammar = grammarAddon();
  const vocabulary: Vocabulary = {
    ...grammar.vocabularyInfo(handle),
    bytes(tokenId) {
      const bytes = grammar.tokenBytes(handle, tokenId);
      if (!bytes) throw new OnpolicyError('INVALID_REQUEST', `token id ${tokenId}: not in the vocabulary`);
      return bytes;
    },
    tokenize: (text) => grammar.tokenizeBytes(handle, new Uint8Array(Buffer.from(text as string))),
  };
  handles.set(vocabulary, handle);
  return vocabulary;
}

function wrapMatcher(first: Handle): Matcher {
  const grammar = grammarAddon();
  let handle: Handle | undefined = first;
  const use = (): Handle => {
    if (!handle) throw new OnpolicyError('CLOSED', 'this matcher was disposed');
    return handle;
  };
  return {
    fillMask(mask) {
      if (grammar.fillMask(use(), mask) === undefined)
        throw new OnpolicyError(
          'INVALID_REQUEST',
          'mask: expected an Int32Array of ceil(vocabSize / 32) words',
        );
    },
    accept: (tokenId) => Number.isInteger(tokenId) && tokenId >= 0 && grammar.accept(use(), tokenId),
    isComplete: () => grammar.isComplete(use()),
    forcedTokens: () => grammar.forcedTokens(use()),
    rollback(count) {
      if (!Number.isInteger(count) || count < 0 || !grammar.rollback(use(), count))
        throw new OnpolicyError('INVALID_REQUEST', `rollback: cannot take back ${count} tokens`);
    },
    clone: () => wrapMatcher(grammar.cloneMatcher(use())),
    dispose() {
      handle = undefined;
    },
  };
}
