/** A validated request on a loaded model -> the prompt that its answer would start from. */

import type { RunningModel } from '../models/index.ts';
import type { RenderedPrompt, ValidChatRequest } from '../protocol/index.ts';
import { type MessageFormat, type ModelTemplate, templateFor } from '../template/chat-format/index.ts';
import { buildPrompt, type Prompt, type PromptContext } from './prompt.ts';
import type { CallPlan } from './render-chat.ts';

/** Returns the options for rendering tools and calls in a model's message format. */
export function callPlan({ tools, isNamed }: MessageFormat): CallPlan {
  return { format: tools, areToolsTold: !isNamed };
}

/** Builds the prompt of the messages. */
export async function chatPrompt(
  model: RunningModel,
  request: ValidChatRequest,
  template: ModelTemplate,
  signal: AbortSignal | undefined,
): Promise<Prompt> {
  return await buildPrompt(request, promptContext(model, template, signal));
}

export function promptContext(
  { tokenizer, contextSize, media }: RunningModel,
  { template, format }: ModelTemplate,
  signal: AbortSignal | undefined,
): PromptContext {
  const { reasoning } = format;
  return { template, tokenizer, contextSize, media, reasoning, calls: callPlan(format), signal };
}

/** Renders and encodes the messages as {@link answer} does, without generating. */
export async function renderPrompt(
  model: RunningModel,
  request: ValidChatRequest,
  signal: AbortSignal | undefined,
): Promise<RenderedPrompt> {
  const { text, ids } = await chatPrompt(model, request, templateFor(model, request), signal);
  return {
    object: 'chat.completion.prompt',
    model: request.model ?? model.name,
    prompt: text,
    prompt_token_ids: Array.from(ids).filter((id) => id >= 0),
    count: ids.length,
    max_model_len: model.contextSize,
  };
}
