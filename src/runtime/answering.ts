/** Checked requests -> answers of a runtime's models. All resources of a request are leased until its answer is complete. */

import {
  type AnswerContext,
  answer,
  answerText,
  beginTrace,
  classify,
  decide,
  decisionEntries,
  embed,
  judgePairs,
  type PairScores,
  parseAnswer,
  renderPrompt,
  scorePairs,
  toJudgeRequest,
  toRerankResponse,
  toScoreResponse,
} from '../answer/index.ts';
import { atField, LeaseScope, lease, limitedSignal } from '../common/index.ts';
import type { HeaderEntries } from '../engine/native/index.ts';
import { detokenize } from '../engine/tokenizer/index.ts';
import { failIfAborted, fromNative } from '../errors.ts';
import {
  type EmbeddingModel,
  type FindRegistered,
  leaseModel,
  type ModelLease,
  type Models,
  type NamedAdapters,
} from '../models/index.ts';
import { KV_TRANSFER_FOLDER } from '../models/prompt-files/index.ts';
import {
  admitChatRequest,
  admitDecisionRequest,
  admitParseAnswerRequest,
  admitTextCompletionRequest,
  type ChatCompletion,
  type ChatCompletionRequest,
  type Checked,
  type ClassifyRequest,
  type ClassifyResponse,
  checkDetokenizeRequest,
  checkTokenIds,
  checkTokenizeRequest,
  checkVocabulary,
  type Decision,
  type DecisionRequest,
  type DetokenizeRequest,
  type EmbeddingRequest,
  type EmbeddingResponse,
  fault,
  type ParseAnswerRequest,
  type RenderedPrompt,
  type RerankRequest,
  type RerankResponse,
  type ScoreRequest,
  type ScoreResponse,
  type TextCompletionRequest,
  type TokenizeRequest,
  throwFaults,
  toKeepAlive,
  toSpeculation,
  toValidClassify,
  toValidEmbedding,
  toValidRerank,
  toValidScore,
  type ValidChatRequest,
  type ValidEmbeddingRequest,
  type ValidPairs,
  type ValidSpeculation,
} from '../protocol/index.ts';
import type { AnswerName, CallOptions, ChatAnswer, TextAnswer } from '../protocol/service/index.ts';
import type { CheckedOptions } from './options.ts';

export type AnsweringSettings = {
  readonly models: Models;
  readonly find: FindRegistered;
  readonly named: NamedAdapters;
  readonly options: CheckedOptions;
  /** Throws when the runtime is closed. */
  readonly requireOpen: () => void;
};

/** Common fields of requests to embedding and ranking models. */
type VectorRequest = Pick<ValidEmbeddingRequest, 'model' | 'timeout_ms' | 'keep_alive'>;

/** Answers requests. Its methods have the names that the table of methods gives them. */
export class Answering implements Record<AnswerName, (...args: never[]) => Promise<unknown>> {
  readonly #settings: AnsweringSettings;
  readonly #speculation: ValidSpeculation;
  readonly #requestIds = new Set<string>(); // ids of running requests
  #arrivals = 0;

  constructor(settings: AnsweringSettings) {
    this.#settings = settings;
    this.#speculation = toSpeculation(settings.options.speculation);
  }

  /** Throws `OVERLOADED` if the model's queue is full. Runs before the request is parsed, so that rejecting is cheap. */
  requireRoom(reference: unknown): void {
    this.#settings.models.admission.requireRoom(typeof reference === 'string' ? reference : null);
  }

  async createCompletion(request: Checked<ChatCompletionRequest>, options: CallOptions): Promise<ChatAnswer> {
    return await this.#run('chat', admitChatRequest(request, this.#settings.options), options, answer);
  }

  async createTextCompletion(
    request: Checked<TextCompletionRequest>,
    options: CallOptions,
  ): Promise<TextAnswer> {
    const valid = admitTextCompletionRequest(request, this.#settings.options);
    return await valid.paths.run(() =>
      this.#run('text_completion', valid.chat, options, (leased, chat, context) =>
        answerText(leased, { ...valid, chat }, context),
      ),
    );
  }

  createEmbeddings(request: Checked<EmbeddingRequest>, options: CallOptions): Promise<EmbeddingResponse> {
    return this.#withVectors(toValidEmbedding(request), options, embed);
  }

  /** Returns the documents ordered by score. */
  async rerank(request: Checked<RerankRequest>, options: CallOptions): Promise<RerankResponse> {
    const valid = toValidRerank(request);
    return toRerankResponse(valid, await this.#scoresOf(valid, options), options);
  }

  async score(request: Checked<ScoreRequest>, options: CallOptions): Promise<ScoreResponse> {
    const valid = toValidScore(request);
    return toScoreResponse(valid, await this.#scoresOf(valid, options), options);
  }

  classify(request: Checked<ClassifyRequest>, options: CallOptions): Promise<ClassifyResponse> {
    return this.#withVectors(toValidClassify(request), options, (model, valid, signal) =>
      classify(model, valid, signal, options),
    );
  }

  async #scoresOf(valid: ValidPairs, options: CallOptions): Promise<PairScores> {
    if (await this.#makesVectors(valid, options)) return await this.#withVectors(valid, options, scorePairs);
    return await this.#run('text_completion', toJudgeRequest(valid), options, (leased, chat, context) =>
      judgePairs(leased, valid, chat, context),
    );
  }

  /** Returns true if the model makes vectors. Named and registered models never do, because they start from a model that generates text. */
  async #makesVectors({ model }: ValidPairs, { signal }: CallOptions): Promise<boolean> {
    const { named, find, models } = this.#settings;
    if (model !== null && named.find(model)) return false;
    using registered = model === null ? null : await find(model);
    return !registered && (await models.memory.makesVectors(model, signal));
  }

  /** Runs `ask` on a leased embedding or ranking model. */
  async #withVectors<Valid extends VectorRequest, Answer>(
    valid: Valid,
    { signal: given }: CallOptions,
    ask: (model: EmbeddingModel, valid: Valid, signal: AbortSignal | undefined) => Promise<Answer>,
  ): Promise<Answer> {
    failIfAborted(given);
    const { models } = this.#settings;
    using leases = new LeaseScope();
    leases.add(models.admission.arrive(valid.model));
    const { signal } = leases.add(limitedSignal(given, valid.timeout_ms));
    const use = { signal, keepMs: toKeepAlive(valid.keep_alive ?? null), isAnswer: true };
    const { model } = leases.add(await models.memory.useVectors(valid.model, use));
    return await ask(model, valid, signal);
  }

  /** Returns the probabilities of the values of questions. */
  async decide(request: Checked<DecisionRequest>, options: CallOptions): Promise<Decision> {
    const valid = admitDecisionRequest(request, this.#settings.options);
    return await valid.paths.run(() =>
      this.#run('chat', valid.chat, options, (leased, chat, context) => decide(leased, valid, chat, context)),
    );
  }

  /** Returns the entries of a GGUF file by which a model's decisions are read. */
  async decisionEntries(reference: string, signal: AbortSignal | undefined): Promise<HeaderEntries> {
    using leased = await this.lease(reference, signal);
    return await decisionEntries(leased, this.#settings.options, signal);
  }

  /** Returns the prompt from which messages would be answered. */
  async renderPrompt(
    request: Checked<ChatCompletionRequest>,
    { signal }: CallOptions,
  ): Promise<RenderedPrompt> {
    const valid = admitChatRequest(request, this.#settings.options);
    using leased = await this.lease(valid.model, signal);
    return await renderPrompt(leased.model, valid, signal);
  }

  /** Returns the answer that the chat request would have got with these tokens. */
  async parseAnswer(request: Checked<ParseAnswerRequest>, { signal }: CallOptions): Promise<ChatCompletion> {
    const valid = admitParseAnswerRequest(request, this.#settings.options);
    return await valid.paths.run(async () => {
      const { model, adapters } = valid.chat;
      using leased = await leaseModel(this.#settings, model, { signal, adapters });
      return await parseAnswer(leased, valid, signal);
    });
  }

  async tokenize(given: string, options: Omit<TokenizeRequest, 'text'>): Promise<number[]> {
    const { text, model, addSpecialTokens, parseSpecial } = checkTokenizeRequest(given, options);
    using leased = await this.lease(model || null, undefined);
    const special = { addSpecial: addSpecialTokens ?? false, parseSpecial: parseSpecial ?? false };
    return Array.from(await atField('text', () => leased.model.tokenizer.encode(text, special)));
  }

  async detokenize(given: readonly number[], options: Omit<DetokenizeRequest, 'ids'>): Promise<string> {
    const { ids, model, skipSpecialTokens } = checkDetokenizeRequest(given, options);
    using leased = await this.lease(model || null, undefined);
    const { tokenizer } = leased.model;
    checkTokenIds(ids, tokenizer.vocabSize);
    return detokenize(tokenizer, ids, skipSpecialTokens ?? false);
  }

  /** Returns the most tokens that a prompt and its answer may have together. */
  async contextSize(model: string | null): Promise<number> {
    using leased = await this.lease(model || null, undefined);
    return leased.model.contextSize;
  }

  /** Loads the model of a reference and leases it. Null stands for the default model. */
  lease(reference: string | null, signal: AbortSignal | undefined): Promise<ModelLease> {
    return leaseModel(this.#settings, reference, { signal });
  }

  /** Runs a request with traces and limits. `operation`: its name in a trace. */
  async #run<Answer>(
    operation: 'chat' | 'text_completion',
    valid: ValidChatRequest,
    { signal: given, traceId, cacheSalt, background, shortenAnswer = false }: CallOptions,
    ask: (leased: ModelLease, request: ValidChatRequest, context: AnswerContext) => Promise<Answer>,
  ): Promise<Answer> {
    const { models, options, requireOpen } = this.#settings;
    failIfAborted(given);
    using leases = new LeaseScope();
    const { signal } = leases.add(limitedSignal(given, valid.timeout_ms));
    leases.add(models.admission.arrive(valid.model));
    leases.add(this.#claimId(valid.request_id));
    const trace = leases.add(await beginTrace(operation, valid));
    try {
      const use = { signal, keepMs: valid.keep_alive, isAnswer: true, adapters: valid.adapters };
      const leased = leases.add(await leaseModel(this.#settings, valid.model, use));
      checkVocabulary(valid, leased.model.tokenizer.vocabSize);
      const speculation = valid.speculation ?? this.#speculation;
      const drafting = leases.add(await models.memory.drafts.use(leased.model, speculation, use));
      requireOpen();
      return await ask(
        leased,
        { ...valid, request_id: valid.request_id ?? traceId ?? null, shortens_answer: shortenAnswer },
        {
          signal,
          leases,
          trace,
          processedLogprobs: options.logprobsMode === 'processed',
          speculation: this.#speculation,
          draftModel: drafting?.model.handle ?? null,
          answerIndexBytes: options.answerIndexBytes,
          kvTransferFolder: options.kvTransferFolder ?? KV_TRANSFER_FOLDER,
          arrival: this.#arrivals++,
          cacheSalt: cacheSalt ?? null,
          background: background ?? false,
        },
      );
    } catch (error) {
      const known = fromNative(error);
      trace?.failed(known);
      throw known;
    }
  }

  #claimId(id: string | null): Disposable | null {
    if (id === null) return null;
    if (this.#requestIds.has(id))
      throwFaults([fault(['request_id'], 'conflict', 'an id that no running request has', id)]);
    this.#requestIds.add(id);
    return lease(() => this.#requestIds.delete(id));
  }
}
