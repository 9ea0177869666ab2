/** `speculation` and `prediction` of a request -> what drafts for each of its choices. */
import { atField } from '../common/index.ts';
import { type Engine, type Group, Speculation } from '../engine/index.ts';
import { errorAt } from '../errors.ts';
import { type DraftSources, type Handle, loadAddon } from '../native/index.ts';
import type { ValidChatRequest, ValidSpeculation } from '../protocol/index.ts';
import type { Tokenizer } from '../tokenizer/index.ts';
import type { AnswerIndexes } from './answer-indexes.ts';

/** What drafts depend on beside the request. */
export type SpeculationContext = {
  readonly engine: Engine;
  readonly tokenizer: Tokenizer;
  readonly answers: AnswerIndexes;
  /** Of a request that does not say. */
  readonly speculation: ValidSpeculation;
  /** The smaller model that drafts; null: none does, or it is the engine's head. */
  readonly draftModel: Handle | null;
};

/** The method that `auto` stands for. */
const AUTO = { method: 'suffix', maxTokens: 15, minMatch: 3 } as const;
/** How often drafts are thought to be right before any was seen. */
const TRUST_IN_MATCH = 0.4;
const TRUST_IN_PREDICTION = 0.8;

/** What drafts for the choices of one request. */
export type SpeculationPlan = {
  /** One per choice, or none. */
  readonly speculations: readonly Speculation[];
  /** Takes the tokens of a choice that has finished. */
  readonly remember: (choice: number, answer: readonly number[]) => void;
};

const NOTHING: SpeculationPlan = { speculations: [], remember: () => {} };

/** Where JavaScript edits logits, beams are searched, or the cache cannot be cut, nothing is drafted. */
export async function planSpeculation(
  request: ValidChatRequest,
  { prompt, cacheKey, media }: Group,
  { engine, tokenizer, answers, speculation, draftModel }: SpeculationContext,
): Promise<SpeculationPlan> {
  const given = request.speculation ?? speculation;
  const isPossible =
    engine.rollbackTokens > 0 && !media && !request.use_beam_search && request.logits_processors.length === 0;
  if (given === false || !isPossible) return NOTHING;
  const { method, maxTokens, minMatch } = given === 'auto' ? AUTO : given;
  const head = draftModel === null ? engine.draftHead : null;
  if (method === 'mtp' && head?.kind !== 'own')
    throw errorAt(
      'speculation.method',
      'UNSUPPORTED',
      'mtp needs a model with layers for multi-token prediction, which this one lacks',
    );
  const prediction = await atField('prediction', () =>
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
  return {
    speculations,
    remember: (choice, answer) => answers.add(cacheKey, prompt, answer, speculations[choice]!.drafter),
  };
}
