/** A request's messages -> rendered text -> token ids that fit the context. */
import { atField } from '../common/index.ts';
import { contextOverflow, errorAt } from '../errors.ts';
import { type MediaModel, type MediaPart, type PlacedMedia, refuse } from '../media/index.ts';
import type { ValidChatRequest } from '../protocol/index.ts';
import type { ReasoningFormat } from '../reasoning/index.ts';
import type { ChatTemplate } from '../template/index.ts';
import type { Tokenizer } from '../tokenizer/index.ts';
import { type ContextShift, tokensToDrop, withoutDropped } from './context-shift.ts';
import { closeReasoning, effortVariables } from './effort.ts';
import { hugePromptError } from './huge-prompt.ts';
import { MediaMarkers } from './media-markers.ts';
import { toTemplateMessage } from './template-message.ts';

/** What the prompt is made with. */
export type PromptContext = {
  readonly template: ChatTemplate;
  readonly tokenizer: Tokenizer;
  /** Tokens of prompt and output together at most. */
  readonly contextSize: number;
  /** Null: the model takes text only. */
  readonly media: MediaModel | null;
  /** How the model marks its reasoning; null: it does not. */
  readonly reasoning: ReasoningFormat | null;
};

/** A prompt, and how many tokens may follow it. */
export type Prompt = {
  /** The rendered template. */
  readonly text: string;
  readonly ids: Int32Array; // (prompt) below 0: media
  /** The media among the tokens, ascending. */
  readonly media: readonly PlacedMedia[];
  readonly maxTokens: number;
  /** What is dropped when the context is full; null: nothing, the answer ends. */
  readonly shift: ContextShift | null;
};

const NOTHING = new Int32Array(0);
/** A message from an unknown author. */
const OTHER_MESSAGE = {
  role: 'user',
  name: null,
  tool_calls: null,
  tool_call_id: null,
  reasoning: null,
  refusal: null,
  tools: null,
};

/** Renders and encodes the messages. Fails with `TEMPLATE_FAILED` or `CONTEXT_OVERFLOW`. */
export async function buildPrompt(request: ValidChatRequest, context: PromptContext): Promise<Prompt> {
  const { tokenizer, contextSize } = context;
  const hasMedia = request.messages.some(({ content }) => content.some(({ type }) => type === 'media'));
  const markers = new MediaMarkers(hasMedia ? context.media?.placeholder : null);
  const rendered = await renderWithin(request, context, markers);
  const text = closeReasoning(rendered, request, context.reasoning);
  const addSpecial = request.add_special_tokens;
  const encoded = await encode(text, markers, addSpecial, context);
  const isCut = addSpecial && request.truncate_prompt_tokens !== null;
  const added = isCut ? await tokenizer.encode('', { addSpecial, parseSpecial: true }) : NOTHING;
  const cut = truncate(request, encoded, added, contextSize);
  const needsHead = request.context_shift && request.n_keep === null;
  const head = needsHead ? await headTokens(request, cut.ids, context) : 0;
  return { text, ...fitContext(request, 'messages', cut, { contextSize, head }) };
}

/** More text than a template may take is more than a context holds, mostly. */
async function renderWithin(
  request: ValidChatRequest,
  context: PromptContext,
  markers: MediaMarkers,
): Promise<string> {
  try {
    return render(request, context, markers);
  } catch (error) {
    if (request.messages.length === 0)
      throw errorAt('messages', 'INVALID_REQUEST', 'expected at least one message, got none', error);
    throw await hugePromptError(error, request, context);
  }
}

/** A prompt that is tokens already, in place of messages. */
export type TokenPrompt = {
  /** The field that errors about it name. */
  readonly field: string;
  readonly ids: Int32Array; // (prompt)
  /** The tokens among them that the tokenizer adds around any text. */
  readonly added: Int32Array;
};

/** Fits tokens into the context. Fails with `CONTEXT_OVERFLOW`. */
export function fitPrompt(request: ValidChatRequest, given: TokenPrompt, contextSize: number): Prompt {
  const cut = truncate(request, { ids: given.ids, media: [] }, given.added, contextSize);
  const head = commonLength(cut.ids, given.added);
  return { text: '', ...fitContext(request, given.field, cut, { contextSize, head }) };
}

/** `head`: tokens that stay where the request does not say. */
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

/** The tokens of the system messages at the beginning of the prompt. */
async function headTokens(
  request: ValidChatRequest,
  ids: Int32Array,
  context: PromptContext,
): Promise<number> {
  const first = request.messages.findIndex(({ role }) => role !== 'system' && role !== 'developer');
  const before = request.messages.slice(0, Math.max(0, first));
  const messages = [...before, { ...OTHER_MESSAGE, content: [{ type: 'text' as const, text: '\u00b6' }] }];
  const markers = new MediaMarkers();
  try {
    const text = render({ ...request, messages, continue_final_message: false }, context, markers);
    const special = { addSpecial: request.add_special_tokens, parseSpecial: true };
    return commonLength(ids, await context.tokenizer.encode(text, special));
  } catch {
    return 0; // the template or the tokenizer takes no such chat
  }
}

/** How many leading tokens two lists share. */
function commonLength(ids: Int32Array, other: Int32Array): number {
  let length = 0;
  while (length < Math.min(ids.length, other.length) && ids[length] === other[length]) length += 1;
  return length;
}

/** The text of the messages, as the template writes it. Fails with `UNSUPPORTED` for media. */
export function renderMessages(
  request: ValidChatRequest,
  context: Pick<PromptContext, 'template' | 'tokenizer'>,
): string {
  const markers = new MediaMarkers();
  const text = render(request, { ...context, reasoning: null }, markers);
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

function render(
  request: ValidChatRequest,
  { template, tokenizer, reasoning }: Pick<PromptContext, 'template' | 'tokenizer' | 'reasoning'>,
  markers: MediaMarkers,
): string {
  const asParts = template.contentFormat === 'openai';
  const input = {
    messages: request.messages.map((message, index) => toTemplateMessage(message, index, asParts, markers)),
    tools: request.tools.length > 0 ? request.tools : null,
    documents: request.documents,
    addGenerationPrompt: request.add_generation_prompt,
    continueFinalMessage: request.continue_final_message,
    kwargs: { ...effortVariables(request, template, reasoning), ...request.chat_template_kwargs },
    bosToken: tokenizer.bosText,
    eosToken: tokenizer.eosText,
  };
  return template.render(input, {
    parseToolArguments: true,
    requireDocumentFields: true,
    growsLists: true,
  });
}

/**
 * `truncate_prompt_tokens`: the last tokens; -1 keeps as many as the context holds beside the answer. What was `added` around the
 * text stays, and counts. A medium is never cut: it goes as a whole.
 */
function truncate(
  request: ValidChatRequest,
  prompt: EncodedPrompt,
  added: Int32Array,
  contextSize: number,
): EncodedPrompt {
  const { ids, media } = prompt;
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
  let before = 0; // of what was added, how much stands before the text
  while (before < Math.min(added.length, kept) && added[before] === ids[before]) before += 1;
  let start = ids.length - kept;
  for (const span of media)
    if (span.start < start + before && start < span.start + span.count) start = span.start + span.count;
  if (ids.length - start < Math.max(Math.min(1, kept), before))
    throw errorAt(
      'truncate_prompt_tokens',
      'INVALID_REQUEST',
      `the prompt ends with an image or sound of more than ${kept} tokens, which cannot be cut`,
    );
  const cut = ids.slice(start);
  cut.set(ids.subarray(0, before));
  const left = media.filter((span) => span.start >= start);
  return { ids: cut, media: left.map((span) => ({ ...span, start: span.start - start })) };
}

/** Tokens that may be generated: as many as the request asks for, or as the context has left. */
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
  if (wanted !== null && wanted > left)
    throw contextOverflow(
      'max_completion_tokens',
      `${wanted} tokens do not fit: the prompt has ${promptTokens} and the context holds ` +
        `${contextSize}; at most ${left} fit`,
      { ...use, max_completion_tokens: wanted },
    );
  const maxTokens = wanted ?? left;
  if (request.min_tokens > maxTokens)
    throw errorAt(
      'min_tokens',
      'INVALID_REQUEST',
      `expected at most the ${maxTokens} tokens that may be generated, got ${request.min_tokens}`,
    );
  return maxTokens;
}
