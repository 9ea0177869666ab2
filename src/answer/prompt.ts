/** A request's messages -> rendered text -> token ids that fit the context. */
import { atField } from '../common/index.ts';
import type { Tokenizer } from '../engine/tokenizer/index.ts';
import { contextOverflow, errorAt, type OnpolicyError } from '../errors.ts';
import { type MediaModel, type MediaPart, type PlacedMedia, refuse } from '../models/media/index.ts';
import type { ChatMessage, ValidChatRequest } from '../protocol/index.ts';
import type { ChatTemplate } from '../template/index.ts';
import {
  continuedReasoning,
  openReasoning,
  REASONING_FORMATS,
  type ReasoningFormat,
} from '../template/reasoning/index.ts';
import { NO_OTHER_FIELDS } from './arrange-messages.ts';
import { type ContextShift, tokensToDrop, withoutDropped } from './context-shift.ts';
import { closeReasoning } from './effort.ts';
import { hugePromptError, requireRoomFor } from './huge-prompt.ts';
import { MediaMarkers } from './media-markers.ts';
import { type CallPlan, renderChat, type WrittenSpans } from './render-chat.ts';

/** Inputs for building a prompt in addition to the request. */
export type PromptContext = {
  readonly template: ChatTemplate;
  readonly tokenizer: Tokenizer;
  /** Maximum of prompt and output tokens together. */
  readonly contextSize: number;
  /** Null if the model takes text only. */
  readonly media: MediaModel | null;
  /** Format of the model's reasoning; null if it writes none. */
  readonly reasoning: ReasoningFormat | null;
  readonly calls?: CallPlan;
  /** Receives what the assistant wrote in each text that is rendered. Absent if nobody asks. */
  readonly written?: WrittenSpans;
  /** Aborts the encoding of a prompt that is far too long. */
  readonly signal?: AbortSignal | undefined;
};

/** A prompt, and the number of tokens that may follow it. */
export type Prompt = {
  /** The rendered template. */
  readonly text: string;
  readonly ids: Int32Array; // (prompt) below 0: media
  /** The media among the tokens, ascending. */
  readonly media: readonly PlacedMedia[];
  readonly maxTokens: number;
  /** Tokens to drop when the context is full; null if the answer ends there. */
  readonly shift: ContextShift | null;
};

const NOTHING = new Int32Array(0);

/** Returns the text tokens of a prompt, without media. */
export function textIdsOf({ ids, media }: Prompt): Int32Array {
  return media.length === 0 ? ids : ids.filter((id) => id >= 0);
}

/** Renders and encodes the messages. Fails with `TEMPLATE_FAILED` or `CONTEXT_OVERFLOW`. */
export async function buildPrompt(request: ValidChatRequest, context: PromptContext): Promise<Prompt> {
  const { tokenizer, contextSize } = context;
  const hasMedia = request.messages.some(({ content }) => content.some(({ type }) => type === 'media'));
  const markers = new MediaMarkers(hasMedia ? context.media?.placeholder : null);
  const text = await promptText(request, context, markers);
  const addSpecial = request.add_special_tokens;
  const encoded = await encode(text, markers, addSpecial, context);
  const isCut = addSpecial && request.truncate_prompt_tokens !== null;
  const added = isCut ? await tokenizer.encode('', { addSpecial, parseSpecial: true }) : NOTHING;
  const cut = truncate(request, encoded, added, contextSize);
  const needsHead = request.context_shift && request.n_keep === null;
  const head = needsHead ? await headTokens(request, cut.ids, context) : 0;
  return { text, ...fitContext(request, 'messages', cut, { contextSize, head }) };
}

/** Renders the messages, up to where the answer begins. Fails with `TEMPLATE_FAILED`, or `CONTEXT_OVERFLOW` for far too much text. */
export async function promptText(
  request: ValidChatRequest,
  context: PromptContext,
  markers = new MediaMarkers(),
): Promise<string> {
  const rendered = await renderWithin(request, context, markers);
  const text = closeReasoning(rendered, request, context.reasoning);
  if (mustFit(request)) await requireRoomFor(text, 'messages', context);
  return text;
}

/** Returns true if a prompt longer than the context is an error. */
export function mustFit({ truncate_prompt_tokens, context_shift }: ValidChatRequest): boolean {
  return truncate_prompt_tokens === null && !context_shift;
}

/**
 * Renders the messages. A template that exceeds its text budget is reported as an overflow of the context if the messages alone do not fit.
 */
async function renderWithin(
  request: ValidChatRequest,
  context: PromptContext,
  markers: MediaMarkers,
): Promise<string> {
  try {
    return renderContinued(request, context, markers);
  } catch (error) {
    if (request.messages.length === 0)
      throw errorAt('messages', 'INVALID_REQUEST', 'expected at least one message, got none', error);
    throw await hugePromptError(error, request, context);
  }
}

/** A prompt given as tokens, in place of messages. */
export type TokenPrompt = {
  /** Field of the request that errors name. */
  readonly field: string;
  readonly ids: Int32Array; // (prompt)
  /** Tokens that the tokenizer adds around any text, as they are in `ids`. */
  readonly added: Int32Array;
  /** Lengths of prefixes that other prompts share. A recurrent model saves its state there. */
  readonly places?: readonly number[];
};

/** Fits given tokens into the context. Fails with `CONTEXT_OVERFLOW`. */
export function fitPrompt(request: ValidChatRequest, given: TokenPrompt, contextSize: number): Prompt {
  const cut = truncate(request, { ids: given.ids, media: [] }, given.added, contextSize);
  const head = commonLength(cut.ids, given.added);
  return { text: '', ...fitContext(request, given.field, cut, { contextSize, head }) };
}

/** Fits a prompt into the context. `head` is the number of tokens to keep in a context shift if the request does not set `n_keep`. */
function fitContext(
  request: ValidChatRequest,
  field: string,
  { ids, media }: EncodedPrompt,
  { contextSize, head }: { contextSize: number; head: number },
): Omit<Prompt, 'text'> {
  if (!request.context_shift)
    return { ids, media, maxTokens: outputLimit(request, field, ids.length, contextSize), shift: null };
  if (media.length > 0)
    throw errorAt('context_shift', 'UNSUPPORTED', 'not for a prompt with pictures or sounds');
  const most = Math.floor(contextSize / 2);
  if ((request.n_keep ?? 0) > most)
    throw errorAt(
      'n_keep',
      'INVALID_REQUEST',
      `expected at most ${most}, half the tokens of the context, got ${request.n_keep}`,
    );
  const keep = request.n_keep ?? Math.min(head, most);
  const dropped = tokensToDrop(ids.length, { keep, contextSize });
  const left = withoutDropped(ids, keep, dropped);
  const unbounded = contextSize + left.length + (request.max_completion_tokens ?? contextSize);
  const maxTokens = Math.min(
    outputLimit(request, field, left.length, unbounded),
    request.max_completion_tokens ?? contextSize,
  );
  return { ids: left, media, maxTokens, shift: { keep, contextSize, dropped } };
}

/** Returns the number of tokens of the system messages at the beginning of the prompt. */
async function headTokens(
  request: ValidChatRequest,
  ids: Int32Array,
  context: PromptContext,
): Promise<number> {
  const first = request.messages.findIndex(({ role }) => role !== 'system' && role !== 'developer');
  const before = request.messages.slice(0, Math.max(0, first));
  const other: ChatMessage = {
    ...NO_OTHER_FIELDS,
    role: 'user',
    content: [{ type: 'text', text: '\u00b6' }],
  };
  const messages = [...before, other];
  const markers = new MediaMarkers();
  try {
    const text = renderChat({ ...request, messages, continue_final_message: false }, context, markers);
    const special = { addSpecial: request.add_special_tokens, parseSpecial: true };
    return commonLength(ids, await context.tokenizer.encode(text, special));
  } catch {
    return 0; // the template or the tokenizer rejects this chat
  }
}

/** Returns the number of leading tokens that two lists share. */
export function commonLength(ids: Int32Array, other: Int32Array): number {
  let length = 0;
  while (length < Math.min(ids.length, other.length) && ids[length] === other[length]) length += 1;
  return length;
}

/** Returns the text of the messages as the template writes it. Fails with `UNSUPPORTED` for media. */
export function renderMessages(
  request: ValidChatRequest,
  context: Pick<PromptContext, 'template' | 'tokenizer' | 'calls'>,
): string {
  const markers = new MediaMarkers();
  const text = renderChat(request, { ...context, reasoning: null }, markers);
  if (markers.count === 0) return text;
  const { path, part } = firstPart(markers.split(text));
  throw errorAt(path, 'UNSUPPORTED', `training takes text only, got a part of type ${part.kind}`);
}

function firstPart(parts: readonly (string | MediaPart)[]): MediaPart {
  return parts.find((part) => typeof part !== 'string')!;
}

async function encode(
  text: string,
  markers: MediaMarkers,
  addSpecial: boolean,
  { tokenizer, media }: PromptContext,
): Promise<EncodedPrompt> {
  if (markers.count === 0)
    return {
      ids: await atField('messages', () => tokenizer.encode(text, { addSpecial, parseSpecial: true })),
      media: [],
    };
  const parts = markers.split(text);
  if (!media) throw refuse(firstPart(parts), null);
  return await media.tokenize(parts, addSpecial);
}

type EncodedPrompt = Pick<Prompt, 'ids' | 'media'>;

/**
 * Renders the messages. If the request continues the reasoning of its last message, that reasoning is written behind the generation prompt,
 * where the model itself would write it, because templates close a last message that has reasoning.
 */
function renderContinued(request: ValidChatRequest, context: PromptContext, markers: MediaMarkers): string {
  const continued = continuedReasoning(request);
  if (continued === null) return renderChat(request, context, markers);
  const messages = request.messages.slice(0, -1);
  const before = { ...request, messages, add_generation_prompt: true, continue_final_message: false };
  const reasoning = context.reasoning ?? REASONING_FORMATS.think;
  return openReasoning(reasoning, renderChat(before, context, markers)) + continued;
}

/**
 * Applies `truncate_prompt_tokens`: keeps the last tokens, or with `truncation_side: 'right'` the first; -1 keeps as many as the context
 * holds beside the answer. The `added` tokens on the side that is cut are kept, and count. A medium is never cut, only dropped as a whole.
 */
function truncate(
  request: ValidChatRequest,
  prompt: EncodedPrompt,
  added: Int32Array,
  contextSize: number,
): EncodedPrompt {
  const { ids } = prompt;
  const asked = request.truncate_prompt_tokens;
  if (asked === null) return prompt;
  if (asked > contextSize)
    throw errorAt(
      'truncate_prompt_tokens',
      'INVALID_REQUEST',
      `expected at most the ${contextSize} tokens of the context, got ${asked}`,
    );
  const kept = Math.max(0, asked === -1 ? contextSize - (request.max_completion_tokens ?? 0) : asked);
  if (ids.length <= kept) return prompt;
  return request.truncation_side === 'right'
    ? firstTokens(prompt, added, kept)
    : lastTokens(prompt, added, kept);
}

/** Keeps the last tokens, and those added before the text. */
function lastTokens({ ids, media }: EncodedPrompt, added: Int32Array, kept: number): EncodedPrompt {
  const before = Math.min(commonLength(ids, added), kept);
  let start = ids.length - kept;
  for (const span of media)
    if (span.start < start + before && start < span.start + span.count) start = span.start + span.count;
  if (ids.length - start < Math.max(Math.min(1, kept), before)) throw uncut('ends', kept);
  const cut = ids.slice(start);
  cut.set(ids.subarray(0, before));
  const left = media.filter((span) => span.start >= start);
  return { ids: cut, media: left.map((span) => ({ ...span, start: span.start - start })) };
}

/** Keeps the first tokens, and those added behind the text. */
function firstTokens({ ids, media }: EncodedPrompt, added: Int32Array, kept: number): EncodedPrompt {
  const behind = Math.min(commonLength(ids.toReversed(), added.toReversed()), kept);
  let end = kept - behind;
  for (const span of media.toReversed())
    if (span.start < end && end < span.start + span.count) end = span.start;
  if (end + behind < Math.min(1, kept)) throw uncut('begins', kept);
  const cut = Int32Array.from([...ids.subarray(0, end), ...ids.subarray(ids.length - behind)]);
  return { ids: cut, media: media.filter((span) => span.start + span.count <= end) };
}

function uncut(where: 'begins' | 'ends', kept: number): OnpolicyError {
  return errorAt(
    'truncate_prompt_tokens',
    'INVALID_REQUEST',
    `the prompt ${where} with an image or sound of more than ${kept} tokens, which cannot be cut`,
  );
}

/** Returns how many tokens may be generated: as many as the request asks for, or as the context has left. */
function outputLimit(
  request: ValidChatRequest,
  field: string,
  promptTokens: number,
  contextSize: number,
): number {
  if (promptTokens === 0) {
    const param = request.truncate_prompt_tokens === 0 ? 'truncate_prompt_tokens' : field;
    throw errorAt(param, 'INVALID_REQUEST', 'the prompt is empty');
  }
  const left = contextSize - promptTokens;
  const use = { prompt_tokens: promptTokens, max_model_len: contextSize };
  if (left === 0 && request.truncate_prompt_tokens === -1)
    throw contextOverflow(
      'max_completion_tokens',
      `expected with truncate_prompt_tokens -1 and a prompt of more than the ${contextSize} tokens ` +
        'of the context: it says how much room to leave',
      use,
    );
  if (left < 1)
    throw contextOverflow(
      field,
      `the prompt has ${promptTokens} tokens; the context holds ${contextSize}, at least one of them for ` +
        `the answer. Shorten ${field === 'messages' ? 'the messages' : 'it'} by ${1 - left} tokens`,
      use,
    );
  const wanted = request.max_completion_tokens;
  if (wanted !== null && wanted > left && !request.shortens_answer)
    throw contextOverflow(
      'max_completion_tokens',
      `${wanted} tokens do not fit: the prompt has ${promptTokens} and the context holds ` +
        `${contextSize}; at most ${left} fit`,
      { ...use, max_completion_tokens: wanted },
    );
  const maxTokens = Math.min(wanted ?? left, left);
  if (request.min_tokens > maxTokens)
    throw errorAt(
      'min_tokens',
      'INVALID_REQUEST',
      `expected at most the ${maxTokens} tokens that may be generated, got ${request.min_tokens}`,
    );
  return maxTokens;
}
