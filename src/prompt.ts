/** A request's messages -> rendered text -> token ids that fit the context. */
import { OnpolicyError } from './errors.ts';
import type { ChatMessage, ValidChatRequest } from './protocol/index.ts';
import type { ChatTemplate } from './template/index.ts';
import type { Tokenizer } from './tokenizer.ts';

/** What the prompt is made with. */
export type PromptContext = {
  readonly template: ChatTemplate;
  readonly tokenizer: Tokenizer;
  /** Tokens of prompt and output together at most. */
  readonly contextSize: number;
};

/** A prompt, and how many tokens may follow it. */
export type Prompt = {
  readonly ids: Int32Array; // (prompt)
  readonly maxTokens: number;
};

/** Renders and encodes the messages. Fails with `TEMPLATE_FAILED` or `CONTEXT_OVERFLOW`. */
export async function buildPrompt(request: ValidChatRequest, context: PromptContext): Promise<Prompt> {
  const { template, tokenizer, contextSize } = context;
  const text = template.render({
    messages: request.messages.map((message) => toTemplateMessage(message, template.usesContentParts)),
    addGenerationPrompt: true,
    bosToken: tokenizer.bosText,
    eosToken: tokenizer.eosText,
  });
  const ids = await tokenizer.encode(text, { addSpecial: false, parseSpecial: true });
  return { ids, maxTokens: outputLimit(request, ids.length, contextSize) };
}

/** Tokens that may be generated: what was asked for, or what the context still holds. */
function outputLimit(request: ValidChatRequest, promptTokens: number, contextSize: number): number {
  if (promptTokens === 0) throw new OnpolicyError('INVALID_REQUEST', 'messages: the prompt is empty', { param: 'messages' });
  const left = contextSize - promptTokens;
  if (left < 1)
    throw new OnpolicyError(
      'CONTEXT_OVERFLOW',
      `messages: the prompt has ${promptTokens} tokens; the context holds ${contextSize}, of which at least one is for the answer. ` +
        `Shorten the messages by ${1 - left} tokens`,
      { param: 'messages' },
    );
  const wanted = request.max_completion_tokens ?? request.max_tokens;
  if (wanted !== null && wanted > left)
    throw new OnpolicyError(
      'CONTEXT_OVERFLOW',
      `max_completion_tokens: ${wanted} tokens do not fit: the prompt has ${promptTokens} and the context holds ${contextSize}; at most ${left} fit`,
      { param: 'max_completion_tokens' },
    );
  const maxTokens = wanted ?? left;
  if (request.min_tokens > maxTokens)
    throw new OnpolicyError(
      'INVALID_REQUEST',
      `min_tokens: expected at most the ${maxTokens} tokens that may be generated, got ${request.min_tokens}`,
      { param: 'min_tokens' },
    );
  return maxTokens;
}
