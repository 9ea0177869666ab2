/** A chat completion request -> its answer, its stream, or the prompt that it would be answered from. */
import { innerMethod } from '../../checked-service.ts';
import { type ChatCompletionRequest, type Checked, checkChatRequest } from '../../protocol/index.ts';
import { limitList, type RequestContext, unsupported } from './context.ts';
import { answerCounted } from './counted-answer.ts';
import { requireModelAndAdapters } from './model-access.ts';
import { renameOldFields } from './old-names.ts';
import { json, type WireResponse } from './wire.ts';

/** `POST /v1/chat/completions`. */
export async function createCompletion(context: RequestContext): Promise<WireResponse> {
  const { call, service } = context;
  const checked = await checkChatBody(await context.body(), context);
  const chat = innerMethod(service, 'chat');
  return await answerCounted(checked, context, (request) => chat(request, call));
}

/** `POST /v1/chat/completions/render`. */
export async function renderPrompt(context: RequestContext): Promise<WireResponse> {
  const { call, service } = context;
  const checked = await checkChatBody(await context.body(), context);
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
  limitList(body, 'messages', settings.maxMessages);
  const { maxLogprobs, maxChoices } = settings;
  const { allowBrokenArguments = false } = service;
  const checked = checkChatRequest(body, { ...validation, maxLogprobs, maxChoices, allowBrokenArguments });
  await requireModelAndAdapters(context, checked);
  return checked;
}
