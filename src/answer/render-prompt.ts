/** A validated request on a loaded model -> the prompt that it would be answered from. */
import { type RunningModel, templateFor } from '../models/index.ts';
import type { RenderedPrompt, ValidChatRequest } from '../protocol/index.ts';
import { buildPrompt } from './prompt.ts';

/** Renders and encodes the messages as {@link answer} does, and generates nothing. */
export async function renderPrompt(model: RunningModel, request: ValidChatRequest): Promise<RenderedPrompt> {
  const { tokenizer, contextSize, media } = model;
  const { template, format } = templateFor(model, request);
  const { text, ids } = await buildPrompt(request, {
    template,
    tokenizer,
    contextSize,
    media,
    reasoning: format.reasoning,
  });
  return {
    object: 'chat.completion.prompt',
    model: request.model ?? model.name,
    prompt: text,
    prompt_token_ids: Array.from(ids).filter((id) => id >= 0),
    count: ids.length,
    max_model_len: contextSize,
  };
}
