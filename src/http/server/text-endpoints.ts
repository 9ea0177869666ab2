/** A text completion request -> its answer or its stream. */
import { innerMethod } from '../../checked-service.ts';
import { checkTextCompletionRequest } from '../../protocol/index.ts';
import { limit, type RequestContext, unsupported } from './context.ts';
import { answerCounted } from './counted-answer.ts';
import { requireModelAndAdapters } from './model-access.ts';
import { renameOldFields } from './old-names.ts';
import type { WireResponse } from './wire.ts';

/** `POST /v1/completions`. */
export async function createTextCompletion(context: RequestContext): Promise<WireResponse> {
  const { settings, service, validation, call } = context;
  const body = await context.body();
  renameOldFields(body);
  const { maxLogprobs, maxChoices } = settings;
  const checked = checkTextCompletionRequest(body, { ...validation, maxLogprobs, maxChoices });
  const { prompt, n, best_of } = checked;
  const prompts = typeof prompt === 'string' || typeof prompt[0] === 'number' ? 1 : prompt.length;
  limit('prompt', prompts * (best_of ?? n ?? 1), maxChoices);
  await requireModelAndAdapters(context, checked);
  const text = innerMethod(service, 'text');
  if (!text) throw unsupported('text completions');
  return await answerCounted(checked, context, (request) => text(request, call));
}
