/**
 * A checked request on a loaded model -> its prompt, the plan for writing and reading its answer, and the state that its choices share in
 * the engine.
 */
import { randomBytes } from 'node:crypto';
import type { LeaseScope } from '../common/index.ts';
import { NO_ADAPTER } from '../engine/backend/index.ts';
import { type Group, type GroupMedia, MediaLayout } from '../engine/index.ts';
import type { Handle, SamplerHandle } from '../engine/native/index.ts';
import type { Tokenizer } from '../engine/tokenizer/index.ts';
import { errorAt, OnpolicyError } from '../errors.ts';
import type { ModelLease, RunningModel } from '../models/index.ts';
import type { MediaModel } from '../models/media/index.ts';
import { type KvTransfer, readKvTransfer } from '../models/prompt-files/index.ts';
import type { ValidChatRequest, ValidSpeculation } from '../protocol/index.ts';
import { createSamplers, requireTopLogprobsFit } from '../sampling/index.ts';
import { type MessagePlan, PLAIN_TEXT, templateFor } from '../template/chat-format/index.ts';
import { createMatchers } from './constraint.ts';
import { forbiddenTexts } from './effort.ts';
import { requireKnownExperts } from './known-experts.ts';
import { type OpenedPrompt, planAnswer } from './plan-answer.ts';
import { fitPrompt, type Prompt, type TokenPrompt, textIdsOf } from './prompt.ts';
import { chatPrompt } from './render-prompt.ts';
import type { StopRules } from './text-out.ts';

/** Options for opening a request, in addition to the model. */
export type OpenContext = {
  readonly signal: AbortSignal | undefined;
  /** Leases that are released when the request ends. */
  readonly leases: LeaseScope;
  readonly processedLogprobs: boolean;
  /** Default speculation for requests that do not set it. */
  readonly speculation: ValidSpeculation;
  /** The draft model. Absent or null if there is none. */
  readonly draftModel?: Handle | null;
  /** Limit of the memory, in bytes, for one model's answers as a source of drafts. */
  readonly answerIndexBytes: number;
  /** Folder of saved prompts. */
  readonly kvTransferFolder: string;
  /** Running number of the request within its runtime. */
  readonly arrival: number;
  /** Prompt tokens to answer in place of the request's messages. The answer is then read as plain text without calls and reasoning. */
  readonly prompt?: TokenPrompt;
  /** Separates the request's cached prefixes, in addition to its `cache_salt`. */
  readonly cacheSalt: string | null;
  /** True if the request runs in the background. */
  readonly background: boolean;
};

/** A request that is ready to be answered. */
export type OpenedRequest = Pick<ModelLease, 'model' | 'adapter'> & {
  readonly request: ValidChatRequest;
  readonly context: OpenContext;
  readonly prompt: Prompt;
  readonly textIds: Int32Array; // text tokens of the prompt, without media
  readonly message: MessagePlan;
  readonly rules: StopRules;
  /** The seed drawn for a request that gives none; null if the request gives one. */
  readonly drawnSeed: number | null;
  /** One per choice. */
  readonly samplers: readonly SamplerHandle[];
  readonly group: Group;
  readonly transfer: KvTransfer;
  /** Grammars of the choices: one per choice, or empty if they are unconstrained. */
  readonly matchers: readonly Handle[];
  /** True if the grammars apply from the first token on; false if they apply after the reasoning. */
  readonly coversReasoning: boolean;
  /** Parts of the constraint that are not enforced. */
  readonly warnings: readonly string[];
};

/** Opens a request: validates it against the model, encodes its media and loads the saved part of its prompt. No token is computed yet. */
export async function openRequest(
  { model, adapter }: Pick<ModelLease, 'model' | 'adapter'>,
  request: ValidChatRequest,
  context: OpenContext,
): Promise<OpenedRequest> {
  const { tokenizer } = model;
  const transfer: KvTransfer = request.kv_transfer_params ? readKvTransfer(request) : { kind: 'none' };
  const opened = context.prompt
    ? { format: PLAIN_TEXT, prompt: fitPrompt(request, context.prompt, model.contextSize) }
    : await openChat(model, request, context.signal);
  const { prompt } = opened;
  const maxTokens = transfer.kind === 'save' ? 1 : prompt.maxTokens;
  const planned = planAnswer(request, tokenizer, opened, maxTokens);
  const { message, rules, coversReasoning } = planned;
  refuseWithMedia(request, prompt);
  if (request.logprobs) requireTopLogprobsFit(request, prompt.maxTokens, tokenizer.vocabSize);
  if (request.return_routed_experts && !model.loaded.experts)
    throw errorAt('return_routed_experts', 'UNSUPPORTED', 'this model has no experts');
  if (request.return_routed_experts) requireKnownExperts();
  const drawnSeed = request.seed === null ? randomSeed() : null;
  const seed = request.seed ?? BigInt(drawnSeed!);
  const plan = { tokenizer, defaults: model.defaults, rules, processedLogprobs: context.processedLogprobs };
  const textIds = textIdsOf(prompt);
  const bad_words = [...request.bad_words, ...forbiddenTexts(request, opened.format.reasoning)];
  const samplers = createSamplers({ ...request, bad_words }, textIds, seed, plan);
  const group = await openGroup({ model, adapter }, request, context, prompt, transfer);
  const matchers = await createMatchers(planned, request.n, model.loaded, context.signal);
  return {
    ...{ model, adapter, request, context, prompt, textIds, message, rules, drawnSeed, samplers },
    ...{ group, transfer, coversReasoning, ...matchers },
  };
}

/** Returns true if the cache of a prompt's beginning is saved only at places known before. */
export function savesAtPlaces({ engine, diskCache }: RunningModel): boolean {
  return engine.takesCheckpoints || (diskCache !== null && !engine.movesPieces);
}

/** Creates the state that the choices share in the engine, and loads the part of the prompt's cache that is on disk. */
async function openGroup(
  { model, adapter }: Pick<ModelLease, 'model' | 'adapter'>,
  { cache_salt, priority, skip_reading_prefix_cache: skipsCache }: ValidChatRequest,
  { arrival, background, signal, leases, cacheSalt, prompt: given }: OpenContext,
  prompt: Prompt,
  transfer: KvTransfer,
): Promise<Group> {
  const { diskCache, tokenizer } = model;
  // A sequence shares a saved prompt only with requests that name the same handle.
  const owner = transfer.kind === 'resume' ? `handle ${transfer.handle}` : saltOf(cacheSalt, cache_salt);
  const cells = { prompt: prompt.ids, cacheKey: `${adapter?.identity ?? ''} ${owner}`, arrival, skipsCache };
  const places = savesAtPlaces(model) ? checkpointPlaces(prompt.ids, tokenizer, given?.places) : [];
  const usesDisk = diskCache && transfer.kind === 'none' && !skipsCache;
  const onDisk = usesDisk ? diskCache.open({ group: cells, places, keeps: !background }) : null;
  const group: Group = {
    ...cells,
    media: await encodeMedia(prompt, model.media, signal),
    adapter: adapter?.number ?? NO_ADAPTER,
    checkpoints: places,
    keeper: onDisk,
    priority,
    background,
  };
  await onDisk?.load(group, signal);
  leases.add(onDisk);
  return group;
}

/** Builds the prompt of the messages, and returns the format in which the model writes its answer. */
export async function openChat(
  model: RunningModel,
  request: ValidChatRequest,
  signal: AbortSignal | undefined,
): Promise<OpenedPrompt> {
  const template = templateFor(model, request);
  return { format: template.format, prompt: await chatPrompt(model, request, template, signal) };
}

/** Encodes the media of a prompt for the engine. Returns null if there are none. */
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

/** Throws `UNSUPPORTED` for fields that cannot be honoured when the prompt has media. */
function refuseWithMedia(request: ValidChatRequest, { media }: Prompt): void {
  if (media.length === 0) return;
  const [keyword] = Object.keys(request.mm_processor_kwargs ?? {});
  const [kind] = Object.keys(request.media_io_kwargs ?? {});
  const refused: [string, string] | null =
    keyword !== undefined
      ? [
          `mm_processor_kwargs.${keyword}`,
          "not for one request; the model's option imageTokens bounds the tokens of a picture",
        ]
      : kind !== undefined
        ? [`media_io_kwargs.${kind}`, 'pictures, films and sounds are read whole']
        : request.prompt_logprobs !== null
          ? ['prompt_logprobs', 'not for a prompt with pictures or sounds']
          : request.return_routed_experts
            ? ['return_routed_experts', 'not for a prompt with pictures or sounds']
            : null;
  if (refused) throw new OnpolicyError('UNSUPPORTED', refused.join(': '), { param: refused[0] });
}

/** Returns 48 random bits: exact as a JavaScript number, so that the seed can be reported and sent back. */
function randomSeed(): number {
  return randomBytes(6).readUIntLE(0, 6);
}

/** Returns the part of a cache key that separates callers. The length of the first salt makes the boundary between the two unambiguous. */
function saltOf(ofCall: string | null, ofRequest: string | null): string {
  const own = ofRequest === null ? '' : `salt ${ofRequest}`;
  return ofCall === null ? own : `call ${ofCall.length} ${ofCall} ${own}`;
}

/** Upper limit of the tokens that open an answer in a template without special tokens. */
const OPENING_TOKENS = 16;

/**
 * Returns the positions before the answer, before the last message and behind the first message (the system's), and those of `shared`.
 * Templates mark messages by special tokens: the last special token of a prompt stands where the answer begins, and the same token stands
 * at the same place in each message.
 */
export function checkpointPlaces(
  prompt: Int32Array,
  tokenizer: Pick<Tokenizer, 'isSpecial'>,
  shared: readonly number[] = [],
): number[] {
  const places = [...messagePlaces(prompt, tokenizer), ...shared.filter((place) => place < prompt.length)];
  return [...new Set(places)].sort((a, b) => a - b);
}

function messagePlaces(prompt: Int32Array, { isSpecial }: Pick<Tokenizer, 'isSpecial'>): number[] {
  const last = prompt.findLastIndex((id) => id >= 0 && isSpecial(id));
  if (last <= 0) return prompt.length > OPENING_TOKENS ? [prompt.length - OPENING_TOKENS] : [];
  const before = prompt.lastIndexOf(prompt[last]!, last - 1);
  const first = prompt.indexOf(prompt[last]!, 1);
  return [first, before, last].filter((place) => place > 0);
}
