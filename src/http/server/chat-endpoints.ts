/** A chat completion request -> its answer, its stream, or the prompt that it would be answered from. */
import { innerMethod } from '../../checked-service.ts';
import {
  type ChatCompletionRequest,
  type Checked,
  checkChatRequest,
  isTraceId,
} from '../../protocol/index.ts';
import { readJson } from './body.ts';
import { type RequestContext, tooMany, unsupported } from './context.ts';
import { answerCounted } from './counted-answer.ts';
import { requireModelAndAdapters } from './model-access.ts';
import { renameOldFields } from './old-names.ts';
import { json, type WireResponse } from './wire.ts';

/** `POST /v1/chat/completions`. */
export async function createCompletion(context: RequestContext): Promise<WireResponse> {
  const { call, service } = context;
  const checked = await checkChatBody(await readJson(context.request, context.settings), context);
  const chat = innerMethod(service, 'chat');
  return await answerCounted(checked, context, (request) => chat(request, call));
}

/** `POST /v1/chat/completions/render`. */
export async function renderPrompt(context: RequestContext): Promise<WireResponse> {
  const { call, service } = context;
  const checked = await checkChatBody(await readJson(context.request, context.settings), context);
  const render = innerMethod(service, 'render');
  if (!render) throw unsupported('prompts');
  return json(await render(checked, call));
}

/** Checks a body, and that its token may use its model and adapters. */
export async function checkChatBody(
  body: unknown,
  context: RequestContext,
): Promise<Checked<ChatCompletionRequest>> {
  const { settings, validation, service } = context;
  renameOldFields(body);
  const { messages } = (body ?? {}) as { messages?: unknown };
  const count = Array.isArray(messages) ? messages.length : 0;
  if (count > settings.maxMessages) throw tooMany('messages', count, settings.maxMessages);
  const { maxLogprobs, maxChoices } = settings;
  const { allowBrokenArguments = false } = service;
  const checked = checkChatRequest(body, { ...validation, maxLogprobs, maxChoices, allowBrokenArguments });
  const { request_id } = checked;
  if (isTraceId(request_id)) context.setRequestId(request_id);
  await requireModelAndAdapters(context, checked);
  return checked;
}
