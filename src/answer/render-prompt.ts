/** A validated request on a loaded model -> the prompt that its answer would start from. */

import type { RunningModel } from '../models/index.ts';
import type { RenderedPrompt, ValidChatRequest } from '../protocol/index.ts';
import { type MessageFormat, type ModelTemplate, templateFor } from '../template/chat-format/index.ts';
import { buildPrompt, type Prompt, type PromptContext } from './prompt.ts';
import type { CallPlan, WrittenSpans } from './render-chat.ts';
import { assistantMask, characterSpans, type TokenSpan, tokenSpans } from './token-spans.ts';

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
  const chat = templateFor(model, request);
  const written: WrittenSpans = new Map();
  const marks = request.return_assistant_tokens_mask && chat.template.hasGeneration;
  const context = promptContext(model, chat, signal);
  const { text, ids } = await buildPrompt(request, marks ? { ...context, written } : context);
  const wantsSpans = request.return_token_offsets || request.return_assistant_tokens_mask;
  const spans = wantsSpans ? tokenSpans(text, ids, model.tokenizer) : null;
  return {
    object: 'chat.completion.prompt',
    model: request.model ?? model.name,
    prompt: text,
    prompt_token_ids: Array.from(ids).filter((id) => id >= 0),
    ...(request.return_token_offsets ? { token_offsets: spans && characterSpans(text, spans) } : {}),
    ...(request.return_assistant_tokens_mask ? { assistant_tokens_mask: maskOf(text, spans, written) } : {}),
    count: ids.length,
    max_model_len: model.contextSize,
  };
}

/** Returns 1 for the tokens of the assistant's texts. The prompt is a text that was rendered, or such a text and the end of its reasoning. */
function maskOf(text: string, spans: readonly TokenSpan[] | null, written: WrittenSpans): number[] | null {
  const [, parts] = [...written].find(([rendered]) => text.startsWith(rendered)) ?? [];
  return spans && parts ? assistantMask(text, parts, spans) : null;
}
