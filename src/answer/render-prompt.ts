/** A validated request on a loaded model -> the prompt that it would be answered from. */
import { type ModelTemplate, type RunningModel, templateFor } from '../models/index.ts';
import type { RenderedPrompt, ValidChatRequest } from '../protocol/index.ts';
import { buildPrompt, type Prompt } from './prompt.ts';

/** The prompt of the messages. */
export async function chatPrompt(
  { tokenizer, contextSize, media }: RunningModel,
  request: ValidChatRequest,
  { template, format }: ModelTemplate,
): Promise<Prompt> {
  return await buildPrompt(request, { template, tokenizer, contextSize, media, reasoning: format.reasoning });
}

/** Renders and encodes the messages as {@link answer} does, and generates nothing. */
export async function renderPrompt(model: RunningModel, request: ValidChatRequest): Promise<RenderedPrompt> {
  const { text, ids } = await chatPrompt(model, request, templateFor(model, request));
  return {
    object: 'chat.completion.prompt',
    model: request.model ?? model.name,
    prompt: text,
    prompt_token_ids: Array.from(ids).filter((id) => id >= 0),
    count: ids.length,
    max_model_len: model.contextSize,
  };
}
