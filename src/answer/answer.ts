/** A validated request on a loaded model -> its answer, whole or as a stream. The request's path in one page. */
import { randomBytes, randomUUID } from 'node:crypto';
import { type LoadedModel, NO_ADAPTER } from '../backends/index.ts';
import type { LeaseScope } from '../common/index.ts';
import { type Group, type GroupMedia, MediaLayout, readKvTransfer } from '../engine/index.ts';
import { errorAt, OnpolicyError } from '../errors.ts';
import { type MediaModel, portableIds } from '../media/index.ts';
import type { ModelLease } from '../models/index.ts';
import { PLAIN_TEXT, planMessage, type RunningModel, templateFor } from '../models/index.ts';
import type { Handle } from '../native/index.ts';
import type { ChatCompletion, ValidChatRequest, ValidSpeculation } from '../protocol/index.ts';
import { createLogitsHooks, createPromptScores, createSamplers } from '../sampling/index.ts';
import type { Tokenizer } from '../tokenizer/index.ts';
import { AnswerIndexes } from './answer-indexes.ts';
import { checkpointPlaces } from './checkpoint-places.ts';
import { Completion } from './completion.ts';
import { type ConstraintPlan, createMatchers, planConstraint } from './constraint.ts';
import { forbiddenTexts } from './effort.ts';
import { fitPrompt, type Prompt, type TokenPrompt } from './prompt.ts';
import { beginTransfer, transferKey } from './prompt-transfer.ts';
import { chatPrompt } from './render-prompt.ts';
import { type AnswerHeader, toResponse } from './response.ts';
import { planSpeculation } from './speculation.ts';
import { StopStrings } from './stop-strings.ts';
import { ChatCompletionStream, toChunks } from './stream.ts';
import { contentText } from './template-message.ts';
import type { StopRules } from './text-out.ts';
import { planThinkingBudget } from './thinking-budget.ts';
import type { RequestTrace } from './trace.ts';

/** What an answer needs besides the request and the model. */
export type AnswerContext = {
  readonly signal: AbortSignal | undefined;
  /** Leases of the request; they end with it. */
  readonly leases: LeaseScope;
  readonly processedLogprobs: boolean;
  /** How tokens are drafted where the request does not say. */
  readonly speculation: ValidSpeculation;
  /** The smaller model that drafts. Absent or null: none does. */
  readonly draftModel?: Handle | null;
  /** Bytes that the answers of one model may take as a source of drafts. */
  readonly answerIndexBytes: number;
  /** Folder of saved prompts. */
  readonly kvTransferFolder: string;
  /** Running number of the request within its runtime. */
  readonly arrival: number;
  /** Is answered in place of the request's messages, as text with no calls and no reasoning in it. */
  readonly prompt?: TokenPrompt;
  /** Observes the answer, if it is traced. */
  readonly trace?: RequestTrace | null;
  /** Whose request it is. */
  readonly client: string;
  /** Whether it runs in the background. */
  readonly background: boolean;
};

/** Answers a request. Everything that can be wrong with it shows before the first token. */
export async function answer(
  { model, adapter }: Pick<ModelLease, 'model' | 'adapter'>,
  request: ValidChatRequest,
  context: AnswerContext,
): Promise<ChatCompletion | ChatCompletionStream> {
  const { tokenizer, engine, contextSize } = model;
  const { speculation, draftModel = null } = context;
  const created = Math.floor(Date.now() / 1000);
  const transfer = readKvTransfer(request);
  const { constraint, coversReasoning, unused, format, prompt } = context.prompt
    ? { ...planConstraint(request, PLAIN_TEXT), prompt: fitPrompt(request, context.prompt, contextSize) }
    : await openChat(model, request);
  refuseWithMedia(request, prompt);
  if (request.return_routed_experts && !model.loaded.experts)
    throw errorAt('return_routed_experts', 'UNSUPPORTED', 'this model has no experts');
  const message = planMessage(format, request, prompt.text.slice(-PROMPT_TAIL));
  const isParsed = message.tools !== null || message.reasoning !== null;
  const rules = stopRules(
    request,
    tokenizer,
    transfer.kind === 'save' ? 1 : prompt.maxTokens,
    isParsed ? format.markerIds : new Set(),
  );
  const drawnSeed = request.seed === null ? randomSeed() : null;
  const seed = request.seed ?? BigInt(drawnSeed!);
  const plan = { tokenizer, defaults: model.defaults, rules, processedLogprobs: context.processedLogprobs };
  const textIds = prompt.media.length === 0 ? prompt.ids : prompt.ids.filter((id) => id >= 0);
  const bad_words = [...request.bad_words, ...forbiddenTexts(request, format.reasoning)];
  const samplers = createSamplers({ ...request, bad_words }, textIds, seed, plan);
  const salt = request.cache_salt === null ? '' : `salt ${request.cache_salt}`;
  const cells = {
    prompt: prompt.ids,
    cacheKey: `${adapter?.identity ?? ''} ${transferKey(transfer) ?? salt}`,
    arrival: context.arrival,
  };
  const hasPlaces = engine.takesCheckpoints || (model.diskCache && !engine.movesPieces);
  const places = hasPlaces ? checkpointPlaces(prompt.ids, tokenizer) : [];
  const onDisk =
    transfer.kind === 'none'
      ? (model.diskCache?.open({ group: cells, places, keeps: !context.background }) ?? null)
      : null;
  const group: Group = {
    ...cells,
    media: await encodeMedia(prompt, model.media, context.signal),
    adapter: adapter?.number ?? NO_ADAPTER,
    checkpoints: places,
    keeper: onDisk,
    priority: request.priority,
    client: context.client,
    background: context.background,
  };
  const promptTransfer = await beginTransfer(transfer, { model, adapter: adapter?.identity ?? '' }, group, {
    folder: context.kvTransferFolder,
    ids: portableIds(prompt),
  });
  await onDisk?.load(group, context.signal);
  context.leases.add(onDisk);
  const { matchers, warnings } = await createMatchers({ constraint, unused }, request.n, model.loaded);
  const completion = new Completion({
    engine,
    tokenizer,
    group,
    samplers,
    rules,
    message,
    wantsLogprobs: request.logprobs,
    tokensAsIds: request.return_tokens_as_token_ids,
    signal: context.signal,
    matchers,
    coversReasoning,
    thinkingBudget: await planThinkingBudget(
      request.thinking_token_budget,
      message,
      tokenizer,
      coversReasoning,
    ),
    promptScores: createPromptScores(request, prompt.ids, tokenizer.vocabSize),
    savedPrompt: promptTransfer.savedPrompt,
    recordsExperts: request.return_routed_experts,
    shift: prompt.shift,
    lengthPenalty: request.use_beam_search ? request.length_penalty : null,
    hooks: createLogitsHooks(request, textIds, tokenizer.vocabSize),
    ...(await planSpeculation(request, group, {
      engine,
      tokenizer,
      answers: answersOf(model.loaded, context.answerIndexBytes),
      speculation,
      draftModel,
    })),
  });
  const header: AnswerHeader = {
    id: `chatcmpl-${request.request_id ?? randomUUID()}`,
    created,
    model: request.model ?? model.name,
    systemFingerprint: adapter ? `${model.fingerprint}-${adapter.identity}` : model.fingerprint,
    drawnSeed,
    ...replyRole(request),
    usesFunctions: request.uses_functions,
    namesTool: typeof request.tool_choice === 'object',
    promptIds: textIds,
    keptTokens: prompt.shift?.keep ?? null,
    promptTokens: prompt.ids.length,
    mediaTokens: prompt.media.length === 0 ? null : prompt.ids.length - textIds.length,
    returnTokenIds: request.return_token_ids,
    wantsLogprobs: request.logprobs,
    warnings,
  };
  context.trace?.answered(header, completion);
  completion.hold(context.leases.handOver({}));
  if (!request.stream) {
    await completion.done();
    return toResponse(header, completion, await promptTransfer.finish());
  }
  const { include_usage, continuous_usage_stats } = request.stream_options;
  return new ChatCompletionStream(
    toChunks(header, completion, { atEnd: include_usage, inEveryChunk: continuous_usage_stats }),
    () => completion.stop(new OnpolicyError('ABORTED', 'the stream was aborted')),
  );
}

/** The constraint of an answer to messages, and their prompt. */
async function openChat(
  model: RunningModel,
  request: ValidChatRequest,
): Promise<ConstraintPlan & { prompt: Prompt }> {
  const template = templateFor(model, request);
  const plan = planConstraint(request, template.format);
  return { ...plan, prompt: await chatPrompt(model, request, template) };
}

/** What the engine needs of a prompt's media, encoded; null: there are none. */
async function encodeMedia(
  { media }: Prompt,
  model: MediaModel | null,
  signal: AbortSignal | undefined,
): Promise<GroupMedia | null> {
  if (media.length === 0) return null;
  const rows = await model!.encode(media, signal);
  const spans = media.map(({ start, count, advance, isNonCausal }) => ({
    start,
    count,
    advance,
    isWhole: isNonCausal,
  }));
  const chunks = media.map(({ planes, isNonCausal }, at) => ({ rows: rows[at]!, planes, isNonCausal }));
  return { layout: new MediaLayout(spans), chunks };
}

/** Fields that cannot be honoured when the prompt has media. */
function refuseWithMedia(request: ValidChatRequest, { media }: Prompt): void {
  if (media.length === 0) return;
  const [keyword] = Object.keys(request.mm_processor_kwargs ?? {});
  const refused: [string, string] | null =
    keyword !== undefined
      ? [
          `mm_processor_kwargs.${keyword}`,
          "not for one request; the model's option imageTokens bounds the tokens of a picture",
        ]
      : request.prompt_logprobs !== null
        ? ['prompt_logprobs', 'not for a prompt with pictures or sounds']
        : request.return_routed_experts
          ? ['return_routed_experts', 'not for a prompt with pictures or sounds']
          : null;
  if (refused) throw new OnpolicyError('UNSUPPORTED', refused.join(': '), { param: refused[0] });
}

const indexes = new WeakMap<LoadedModel, AnswerIndexes>();

function answersOf(model: LoadedModel, maxBytes: number): AnswerIndexes {
  let answers = indexes.get(model);
  if (!answers) {
    answers = new AnswerIndexes(maxBytes);
    indexes.set(model, answers);
  }
  return answers;
}

/** Enough of the prompt to see what its end opens. */
const PROMPT_TAIL = 256;

/** The role of the reply, and what `echo` puts before it. */
function replyRole(request: ValidChatRequest): { role: 'assistant'; echo: string } {
  const last = request.messages.at(-1);
  const role = request.add_generation_prompt ? 'assistant' : (last?.role ?? 'assistant');
  const echo = request.echo && last?.role === role ? contentText(last) : '';
  return { role: role as 'assistant', echo }; // the wire's type names the usual one
}

function stopRules(
  request: ValidChatRequest,
  tokenizer: Tokenizer,
  maxTokens: number,
  shownSpecials: ReadonlySet<number>,
): StopRules {
  return {
    stops: request.stop.length > 0 ? new StopStrings(request.stop) : null,
    stopIds: new Set(request.stop_token_ids),
    endIds: tokenizer.endIds,
    eosId: tokenizer.eosId,
    ignoreEos: request.ignore_eos,
    minTokens: request.min_tokens,
    maxTokens,
    includeStop: request.include_stop_str_in_output,
    skipSpecial: request.skip_special_tokens,
    shownSpecials,
    spacesBetween: request.spaces_between_special_tokens,
  };
}

/** Exact as a JavaScript number, so that it can be reported and given back. */
function randomSeed(): number {
  return randomBytes(6).readUIntLE(0, 6);
}
