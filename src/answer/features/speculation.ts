/** `speculation` and `prediction` of a request -> the drafter of each choice. */
import { atField } from '../../common/index.ts';
import { Speculation } from '../../engine/index.ts';
import { type DraftSources, type Handle, loadAddon } from '../../engine/native/index.ts';
import { errorAt } from '../../errors.ts';
import type { LoadedModel } from '../../models/formats/index.ts';
import type { Feature } from '../feature.ts';
import type { OpenedRequest } from '../open-request.ts';

const NOTHING = new Int32Array(0);
/** Method used for `auto`. */
const AUTO = { method: 'suffix', maxTokens: 15, minMatch: 3 } as const;
/** Assumed acceptance rate of drafts before any was checked. */
const TRUST_IN_MATCH = 0.4;
const TRUST_IN_PREDICTION = 0.8;

const indexes = new WeakMap<LoadedModel, AnswerIndexes>();

/**
 * Creates the drafters of the choices. Returns null (no drafts) if speculation is off, JavaScript edits the logits, beams are searched, the
 * prompt has media, the cache cannot be cut, or the answer is one token.
 */
export async function speculation({
  request,
  model,
  context,
  group,
}: OpenedRequest): Promise<Feature | null> {
  const { engine, tokenizer } = model;
  const { prompt, cacheKey, media } = group;
  const { draftModel = null } = context;
  const given = request.speculation ?? context.speculation;
  const isPossible =
    engine.rollbackTokens > 0 && !media && !request.use_beam_search && request.logits_processors.length === 0;
  if (given === false || !isPossible) return null;
  const answers = answersOf(model.loaded, context.answerIndexBytes);
  const { method, maxTokens, minMatch } = given === 'auto' ? AUTO : given;
  const head = draftModel === null ? engine.draftHead : null;
  if (method === 'mtp' && head?.kind !== 'own')
    throw errorAt(
      'speculation.method',
      'UNSUPPORTED',
      'mtp needs a model with layers for multi-token prediction, which this one lacks',
    );
  // The only token of an answer is sampled behind the prompt, before any draft. Decisions ask hundreds of these about a long prompt.
  if (request.max_completion_tokens === 1 && request.prediction === '') return null;
  const prediction =
    request.prediction === ''
      ? NOTHING
      : await atField('prediction', () =>
          tokenizer.encode(request.prediction, { addSpecial: false, parseSpecial: false }),
        );
  const usesText = method === 'ngram' || method === 'suffix';
  const usesHead = head !== null && (given === 'auto' || !usesText);
  const index = method === 'suffix' ? answers.get(cacheKey) : null;
  const sources: DraftSources = {
    minMatch,
    usesText,
    usesHead,
    prediction,
    ...(index ? { answers: index } : {}),
    ...(draftModel ? { model: draftModel, key: cacheKey } : {}),
  };
  const mostDrafts = Math.min(maxTokens, head?.mostDrafts ?? Infinity);
  const usesModel = draftModel !== null || usesHead;
  const trust = prediction.length > 0 ? TRUST_IN_PREDICTION : TRUST_IN_MATCH;
  const known = usesModel && prediction.length === 0 ? { known: engine.knownDrafts } : {};
  const speculations = Array.from({ length: request.n }, () => {
    const drafter = loadAddon().createDrafter(sources, prompt);
    return new Speculation({
      drafter,
      maxTokens: usesText ? maxTokens : mostDrafts,
      trust,
      usesModel,
      usesText,
      usesHead,
      ...known,
    });
  });
  const sum = (count: 'drafted' | 'accepted'): number =>
    speculations.reduce((total, one) => total + one[count], 0);
  return {
    part: ({ index: choice, tokenIds }) => ({
      extras: { speculation: speculations[choice]! },
      finished: () => answers.add(cacheKey, prompt, tokenIds, speculations[choice]!.drafter),
    }),
    usage: () => ({
      accepted_prediction_tokens: sum('accepted'),
      rejected_prediction_tokens: sum('drafted') - sum('accepted'),
    }),
  };
}

/** Returns the finished answers of a model, from which later ones are drafted. */
function answersOf(model: LoadedModel, maxBytes: number): AnswerIndexes {
  let answers = indexes.get(model);
  if (!answers) {
    answers = new AnswerIndexes(maxBytes);
    indexes.set(model, answers);
  }
  return answers;
}

/** Number of prompt tokens stored before each answer, so that the first tokens of an answer can be found too. */
const PROMPT_TAIL = 16;
/** Number of tokens before a draft that must match. The same in every index. */
const MIN_MATCH = 3;

class AnswerIndexes {
  readonly #maxBytes: number;
  readonly #indexes = new Map<string, { readonly handle: Handle; bytes: number }>(); // least recently used first
  #bytes = 0;

  /** @param maxBytes limit of all indexes together; 0 keeps none */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Returns the index of a key, created if needed. Returns null if `maxBytes` is 0. */
  get(key: string): Handle | null {
    if (this.#maxBytes === 0) return null;
    const index = this.#indexes.get(key) ?? {
      handle: loadAddon().createAnswerIndex(MIN_MATCH, this.#maxBytes),
      bytes: 0,
    };
    this.#indexes.delete(key);
    this.#indexes.set(key, index);
    return index.handle;
  }

  /** Adds an answer and the tail of its prompt to the index of a key. Drops the least recently used indexes while all exceed `maxBytes`. */
  add(key: string, prompt: Int32Array, answer: readonly number[], drafter: Handle): void {
    if (!this.get(key)) return;
    const tail = prompt.subarray(-PROMPT_TAIL);
    const tokens = new Int32Array(tail.length + answer.length);
    tokens.set(tail);
    tokens.set(answer, tail.length);
    const index = this.#indexes.get(key)!;
    const bytes = loadAddon().addAnswer(index.handle, tokens, {
      drafter,
      from: prompt.length - tail.length,
    });
    this.#bytes += bytes - index.bytes;
    index.bytes = bytes;
    for (const [old, { bytes: freed }] of this.#indexes) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#indexes.delete(old);
      this.#bytes -= freed;
    }
  }
}
