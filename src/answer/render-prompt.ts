/** A validated request on a loaded model -> the prompt that it would be answered from. */
import type { RunningModel } from '../models/index.ts';
import type { RenderedPrompt, ValidChatRequest } from '../protocol/index.ts';
import { openChat } from './answer.ts';

/** Renders and encodes the messages as {@link answer} does, and generates nothing. */
export async function renderPrompt(model: RunningModel, request: ValidChatRequest): Promise<RenderedPrompt> {
  const { text, ids } = (await openChat(model, request)).prompt;
  return {
    object: 'chat.completion.prompt',
    model: request.model ?? model.name,
    prompt: text,
    prompt_token_ids: Array.from(ids).filter((id) => id >= 0),
    count: ids.length,
    max_model_len: model.contextSize,
  };
}
