/** Requests of Ollama's API -> their answers as parts or as a whole, from any service that answers completions. */

import { OnpolicyError } from '../../../errors.ts';
import type {
  ChatCompletionRequest,
  OllamaChatPart,
  OllamaChatRequest,
  OllamaEmbedRequest,
  OllamaEmbedResponse,
  OllamaGeneratePart,
  OllamaGenerateRequest,
} from '../../../protocol/index.ts';
import type { CallOptions, Completions } from '../../../protocol/service/index.ts';
import {
  AnswerStream,
  type ChatCompletionStream,
  type TextCompletionStream,
} from '../../../protocol/service/index.ts';
import { answerWithin } from '../answer-within.ts';
import { type Form, nanoseconds, type Piece, toParts } from './to-parts.ts';
import { toChat, toEmbedding, toPromptChat, toText } from './to-request.ts';

type Part = OllamaChatPart | OllamaGeneratePart;

const asMessage: Form<OllamaChatPart> = ({ content, thinking, calls }: Piece) => ({
  message: {
    role: 'assistant',
    content,
    ...(thinking ? { thinking } : {}),
    ...(calls ? { tool_calls: calls } : {}),
  },
});

const asResponse: Form<OllamaGeneratePart> = ({ content, thinking }: Piece) => ({
  response: content,
  ...(thinking ? { thinking } : {}),
});

export async function answerChat(
  service: Pick<Completions, 'createCompletion'>,
  asked: OllamaChatRequest,
  model: string,
  options: CallOptions,
): Promise<AnswerStream<OllamaChatPart>> {
  const { request, paths } = toChat(asked);
  return await answered(() => paths.run(() => streamChat(service, request, options)), model, asMessage);
}

/** Answers a prompt with a chat template around it. With `raw` or a suffix, continues the prompt as text. */
export async function answerPrompt(
  service: Pick<Completions, 'createCompletion' | 'createTextCompletion'>,
  asked: OllamaGenerateRequest,
  model: string,
  options: CallOptions,
): Promise<AnswerStream<OllamaGeneratePart>> {
  if (!asked.raw && !asked.suffix) {
    const { request, paths } = toPromptChat(asked);
    return await answered(() => paths.run(() => streamChat(service, request, options)), model, asResponse);
  }
  if (!service.createTextCompletion)
    throw new OnpolicyError('UNSUPPORTED', 'this service has no text completions');
  const { request, paths } = toText(asked);
  const ask = () => service.createTextCompletion!({ ...request, stream: true }, options);
  return await answered(() => paths.run(ask), model, asResponse);
}

/** Returns the parts of an answer, and measures the time until its stream begins. */
async function answered<Shown extends Part>(
  ask: () => Promise<ChatCompletionStream | TextCompletionStream>,
  model: string,
  form: Form<Shown>,
): Promise<AnswerStream<Shown>> {
  const began = performance.now();
  const chunks = await ask();
  const parts = toParts(chunks, model, form, { began, loaded: performance.now() });
  return new AnswerStream(parts, () => chunks.abort());
}

/** Starts an answer with the requested number of tokens, or with the rest of the context if that is less. */
async function streamChat(
  service: Pick<Completions, 'createCompletion'>,
  request: ChatCompletionRequest,
  options: CallOptions,
): Promise<ChatCompletionStream> {
  return (await answerWithin(service, { ...request, stream: true }, options)) as ChatCompletionStream;
}

/** Joins all parts of a stream. */
export async function wholeOf<Whole extends Part>(stream: AnswerStream<Whole>): Promise<Whole> {
  let content = '';
  let thinking = '';
  const calls: NonNullable<Piece['calls']> = [];
  const logprobs: NonNullable<Part['logprobs']> = [];
  let last: Whole | null = null;
  for await (const part of stream) {
    const { message, response } = part as Partial<OllamaChatPart & OllamaGeneratePart>;
    content += message?.content ?? response ?? '';
    thinking += message?.thinking ?? (part as Partial<OllamaGeneratePart>).thinking ?? '';
    calls.push(...(message?.tool_calls ?? []));
    logprobs.push(...(part.logprobs ?? []));
    last = part;
  }
  const piece = { content, thinking, ...(calls.length > 0 ? { calls } : {}) };
  const shown = 'message' in last! ? asMessage(piece) : asResponse(piece);
  return { ...last!, ...shown, ...(logprobs.length > 0 ? { logprobs } : {}) };
}

export async function embedTexts(
  service: Pick<Completions, 'createEmbeddings'>,
  asked: OllamaEmbedRequest,
  model: string,
  options: CallOptions,
): Promise<OllamaEmbedResponse> {
  const began = performance.now();
  if (!service.createEmbeddings) throw new OnpolicyError('UNSUPPORTED', 'this service has no embeddings');
  const isEmpty = Array.isArray(asked.input) && asked.input.length === 0;
  const { data, usage } = isEmpty
    ? { data: [], usage: { prompt_tokens: 0 } }
    : await service.createEmbeddings(toEmbedding(asked), options);
  return {
    model,
    embeddings: data.map(({ embedding }) => embedding as number[]),
    total_duration: nanoseconds(performance.now() - began),
    load_duration: 0,
    prompt_eval_count: usage.prompt_tokens,
  };
}
