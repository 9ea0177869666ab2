/** A text completion request -> its answer or its stream. */
import { innerMethod } from '../../checked-service.ts';
import { checkTextCompletionRequest, isTraceId } from '../../protocol/index.ts';
import { readJson } from './body.ts';
import { type RequestContext, tooMany, unsupported } from './context.ts';
import { answerCounted } from './counted-answer.ts';
import { requireModelAndAdapters } from './model-access.ts';
import { renameOldFields } from './old-names.ts';
import type { WireResponse } from './wire.ts';

/** `POST /v1/completions`. */
export async function createTextCompletion(context: RequestContext): Promise<WireResponse> {
  const { request, settings, service, validation, call } = context;
  const body = await readJson(request, settings);
  renameOldFields(body);
  const { maxLogprobs, maxChoices } = settings;
  const options = { ...validation, maxLogprobs, maxChoices };
  const checked = checkTextCompletionRequest(body, options);
  const { request_id, prompt, n, best_of } = checked;
  const prompts = typeof prompt === 'string' || typeof prompt[0] === 'number' ? 1 : prompt.length;
  const choices = prompts * (best_of ?? n ?? 1);
  if (choices > maxChoices) throw tooMany('prompt', choices, maxChoices);
  if (isTraceId(request_id)) context.setRequestId(request_id);
  await requireModelAndAdapters(context, checked);
  const text = innerMethod(service, 'text');
  if (!text) throw unsupported('text completions');
  return await answerCounted(checked, context, (request) => text(request, call));
}
