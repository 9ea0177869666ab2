/** Texts and tokens -> each other, over HTTP with vLLM's names. */

import {
  checkRequest,
  PathTranslation,
  type RenderedPrompt,
  type TokenizeResponse,
} from '../../../protocol/index.ts';
import { callChecked, hasMethod } from '../../checked-calls.ts';
import { type RequestContext, unsupported } from './context.ts';
import { readBody } from './method-endpoints.ts';
import { requireModel } from './model-access.ts';
import { json, type ServedResponse } from './wire.ts';

const TOKENIZE_PATHS = new PathTranslation({ text: 'prompt', addSpecialTokens: 'add_special_tokens' });
const DETOKENIZE_PATHS = new PathTranslation({ ids: 'tokens' });

/** `POST /tokenize`: of a text, or of the messages of a chat. */
export async function tokenize(context: RequestContext): Promise<ServedResponse> {
  const body = await context.body();
  const isChat = typeof body === 'object' && body !== null && 'messages' in body;
  return json(isChat ? await tokenizeChat(body, context) : await tokenizeText(body, context));
}

/** `POST /detokenize`. */
export async function detokenize(context: RequestContext): Promise<ServedResponse> {
  const { service, validation } = context;
  const { tokens, model } = checkRequest('DetokenizeBody', await context.body(), validation);
  await requireModel(context, { model });
  if (!service.detokenize) throw unsupported('tokens');
  const options = model ? { model } : {};
  const prompt = await DETOKENIZE_PATHS.run(() => service.detokenize!(tokens, options));
  return json({ prompt });
}

async function tokenizeText(body: unknown, context: RequestContext): Promise<TokenizeResponse> {
  const { service, validation } = context;
  const { prompt, model, add_special_tokens, return_token_strs } = checkRequest(
    'TokenizeBody',
    body,
    validation,
  );
  await requireModel(context, { model });
  if (!service.tokenize || !service.contextSize) throw unsupported('tokens');
  const own = model ? { model } : {};
  const options = { ...own, addSpecialTokens: add_special_tokens ?? true, parseSpecial: true };
  const tokens = await TOKENIZE_PATHS.run(() => service.tokenize!(prompt, options));
  const max_model_len = await service.contextSize(model);
  return withTexts({ tokens, max_model_len, count: tokens.length }, model, return_token_strs, context);
}

async function tokenizeChat(body: object, context: RequestContext): Promise<TokenizeResponse> {
  const { service, call } = context;
  const { return_token_strs: wantsTexts, ...chat } = body as Record<string, unknown>;
  const options = checkRequest(
    'TokenizeBody',
    { prompt: '', return_token_strs: wantsTexts },
    context.validation,
  );
  const request = await readBody('renderPrompt', chat, context);
  if (!hasMethod(service, 'renderPrompt')) throw unsupported('prompts');
  const rendered = (await callChecked(service, 'renderPrompt', request, call)) as RenderedPrompt;
  const { prompt_token_ids: tokens, max_model_len, count } = rendered;
  const { model } = request as { model?: string | null };
  return withTexts({ tokens, max_model_len, count }, model, options.return_token_strs, context);
}

/** Adds the text of each token if the request asks for it. */
async function withTexts(
  response: Omit<TokenizeResponse, 'token_strs'>,
  model: string | null | undefined,
  isWanted: boolean | null | undefined,
  { service, call }: RequestContext,
): Promise<TokenizeResponse> {
  if (!isWanted) return { ...response, token_strs: null };
  if (!service.detokenize) throw unsupported('tokens');
  const token_strs: string[] = [];
  for (const id of response.tokens) {
    call.signal.throwIfAborted();
    token_strs.push(await service.detokenize([id], model ? { model } : {}));
  }
  return { ...response, token_strs };
}
