/** A specification and a vocabulary -> a compiled constraint with its matchers. Each specification is compiled once per vocabulary. */
import { fromNative, OnpolicyError } from '../errors.ts';
import type { Handle, NativeModel, NativeSpec } from '../native/index.ts';
import { grammarAddon, loadAddon, type Notice, openGrammar } from '../native/index.ts';
import { type CallerPaths, OWN_PATHS, toSpecError } from './spec-error.ts';
import type { Constraint, Matcher, StructuredOutputs, Vocabulary } from './types.ts';
import { kindOf, toNativeSpec, validateStructuredOutputs } from './validate.ts';

/** Size of the LRU cache of compiled constraints per vocabulary. */
const MAX_CACHED = 128;

const handles = new WeakMap<Vocabulary | Constraint, Handle>();
/** Whether anything was ever compiled: before that the grammar engine need not be there. */
let isUsed = false;
const caches = new WeakMap<Vocabulary, Map<string, Promise<Constraint>>>();

/**
 * Makes a vocabulary from token bytes. A string is its UTF-8 bytes. Special tokens never match text. Throws `INVALID_REQUEST`, and
 * `NATIVE_UNAVAILABLE` in a clone whose grammar engine is not built yet.
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
      false,
    ),
  );
}

/** Reads the vocabulary of a GGUF file, without its weights. */
export async function readVocabulary(ggufPath: string): Promise<Vocabulary> {
  const grammar = await openGrammar();
  return await whenRead(grammar.readVocabulary(ggufPath));
}

/** @internal The vocabulary of a loaded GGUF model. `notice`: see {@link openGrammar}. */
export async function modelVocabulary(model: NativeModel, notice?: Notice): Promise<Vocabulary> {
  const grammar = await openGrammar(notice);
  const tokens = loadAddon().modelTokens(model);
  return await whenRead(
    tokens.then(({ bytes, offsets, ends, specials, mergesById }) =>
      grammar.loadVocabulary(bytes, offsets, ends, specials, mergesById),
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
 * Compiles a specification off the event loop. The same specification on the same vocabulary is compiled once.
 * Rejects with `INVALID_REQUEST` for a malformed and `UNSUPPORTED` for an unenforceable specification; `param` and `detail` say
 * which field, which keyword by its JSON pointer, at which offset of a text.
 */
export async function compileConstraint(
  spec: StructuredOutputs,
  vocabulary: Vocabulary,
): Promise<Constraint> {
  validateStructuredOutputs(spec);
  return await compileChecked(spec, vocabulary, OWN_PATHS);
}

/** @internal The same for a specification without faults. `paths`: where the caller gave it, for errors. */
export async function compileChecked(
  spec: StructuredOutputs,
  vocabulary: Vocabulary,
  paths: CallerPaths,
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
  const key = JSON.stringify(native);
  const cached = cache.get(key);
  const result = cached ?? compile(native, vocabularyHandle);
  cache.delete(key);
  cache.set(key, result);
  if (!cached) result.catch(() => cache.delete(key));
  if (cache.size > MAX_CACHED) cache.delete(cache.keys().next().value as string);
  return await result.catch((error: unknown) => {
    throw toSpecError(error, spec, kindOf(spec), paths);
  });
}

/** @internal The native constraint behind a compiled one, for the engine's step loop. */
export function constraintHandle(constraint: Constraint): Handle {
  const handle = handles.get(constraint);
  if (!handle) throw new OnpolicyError('INVALID_REQUEST', 'constraint: expected one of compileConstraint');
  return handle;
}

/** @internal How many masks of this process lack tokens because their work was spent. */
export function cutMasks(): number {
  return isUsed ? grammarAddon().cutMasks() : 0;
}

async function compile(native: NativeSpec, vocabulary: Handle): Promise<Constraint> {
  const grammar = grammarAddon();
  isUsed = true;
  const compiled = await grammar.compileConstraint(native, vocabulary);
  // While the prompt is computed. Without memory for it the masks are computed when they are needed.
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
