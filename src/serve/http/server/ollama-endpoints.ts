/** Requests of Ollama's API -> their answers: lines of JSON, or one object. */

import {
  checkRequest,
  type OllamaChatRequest,
  type OllamaPart,
  PathTranslation,
} from '../../../protocol/index.ts';
import type { AnswerStream } from '../../../protocol/service/index.ts';
import { answerChat, answerPrompt, embedTexts, toSeconds, wholeOf } from '../../wires/index.ts';
import { limitList, type RequestContext, unsupported } from './context.ts';
import { jsonLines } from './event-stream.ts';
import { namedModels, requireModel } from './model-access.ts';
import { answerResponse } from './stream-response.ts';
import { json, type ServedResponse } from './wire.ts';

/** `POST /api/chat`. */
export async function ollamaChat(context: RequestContext): Promise<ServedResponse> {
  const body = checkRequest('OllamaChatRequest', await readBody(context), context.validation);
  const { messages, model, stream } = body;
  limitList(body, 'messages', context.settings.maxMessages);
  if (!messages?.length)
    return await loadOnly({ message: { role: 'assistant', content: '' } }, body, context);
  const asked = { ...body, model: ownName(model, context) };
  const parts = await answerChat(context.service, asked, model ?? '', context.call);
  return await toAnswer(parts, stream, context);
}

/** `POST /api/generate`. */
export async function ollamaGenerate(context: RequestContext): Promise<ServedResponse> {
  const body = checkRequest('OllamaGenerateRequest', await readBody(context), context.validation);
  const { prompt, images, suffix, model, stream } = body;
  if (!prompt && !suffix && !images?.length) return await loadOnly({ response: '' }, body, context);
  const asked = { ...body, model: ownName(model, context) };
  const parts = await answerPrompt(context.service, asked, model ?? '', context.call);
  return await toAnswer(parts, stream, context);
}

/** `POST /api/embed`. */
export async function ollamaEmbed(context: RequestContext): Promise<ServedResponse> {
  const body = checkRequest('OllamaEmbedRequest', await readBody(context), context.validation);
  limitList(body, 'input', context.settings.maxInputs);
  const asked = { ...body, model: ownName(body.model, context) };
  const answer = await embedTexts(context.service, asked, body.model ?? '', context.call);
  context.charge(answer.prompt_eval_count);
  return json(answer);
}

/** `POST /api/embeddings`: the former endpoint, for one text. */
export async function ollamaEmbeddings(context: RequestContext): Promise<ServedResponse> {
  const { prompt, ...body } = checkRequest(
    'OllamaEmbeddingsRequest',
    await readBody(context),
    context.validation,
  );
  const asked = { ...body, input: prompt, model: ownName(body.model, context) };
  const paths = new PathTranslation({ input: 'prompt' });
  const answer = await paths.run(() => embedTexts(context.service, asked, '', context.call));
  context.charge(answer.prompt_eval_count);
  return json({ embedding: answer.embeddings[0] });
}

/** Returns the name that this library uses for a model: without `:latest`, and with `hf:` for Hugging Face. */
export function ownName(model: string | null | undefined, context: RequestContext): string | null {
  if (!model || namedModels(context).includes(model)) return model || null;
  return model.replace(/:latest$/, '').replace(/^(hf\.co|huggingface\.co)\//, 'hf:');
}

/** Reads a body and checks that its token may use the model. */
async function readBody(context: RequestContext): Promise<unknown> {
  const body = await context.body();
  const { model } = (body ?? {}) as { model?: unknown };
  await requireModel(context, { model: typeof model === 'string' ? ownName(model, context) : null });
  return body;
}

async function toAnswer(
  parts: AnswerStream<OllamaPart>,
  stream: boolean | null | undefined,
  context: RequestContext,
): Promise<ServedResponse> {
  if (stream !== false) return answerResponse(parts, context, jsonLines);
  return answerResponse(await wholeOf(parts as Parameters<typeof wholeOf>[0]), context);
}

/** Answers a request without a prompt: loads the model, or unloads it if `keep_alive` is 0. */
async function loadOnly(
  empty: object,
  { model, keep_alive, stream }: Pick<OllamaChatRequest, 'model' | 'keep_alive' | 'stream'>,
  context: RequestContext,
): Promise<ServedResponse> {
  const { service } = context;
  const own = ownName(model, context);
  const isLeaving = toSeconds(keep_alive) === 0;
  if (isLeaving) {
    if (!service.unload) throw unsupported('the unloading of models');
    await service.unload(own ?? namedModels(context)[0] ?? '');
  } else {
    if (!service.contextSize) throw unsupported('the loading of models');
    await service.contextSize(own);
  }
  const created_at = new Date().toISOString();
  const done_reason = isLeaving ? 'unload' : 'load';
  const answer = { model: model ?? '', created_at, ...empty, done: true, done_reason };
  if (stream === false) return json(answer);
  return { status: 200, headers: { 'content-type': jsonLines.type }, body: jsonLines.event(answer) };
}
