/** A chat completion -> the message of the messages API. */
import { parseJson } from '../../../common/index.ts';
import type {
  ChatCompletion,
  ChatCompletionChoice,
  FinishReason,
  MessageResponse,
  MessageResponseBlock,
  MessageStopReason,
  MessageUsage,
  Usage,
} from '../../../protocol/index.ts';

/** Placeholder for the signature of thoughts, which this library does not sign. */
export const UNSIGNED = 'unsigned';

/** Translates the whole answer to a request for at most `maxTokens` tokens. */
export function toMessage({ id, model, choices, usage }: ChatCompletion, maxTokens: number): MessageResponse {
  const choice = choices[0]!;
  return {
    ...emptyMessage(id, model),
    content: toBlocks(choice),
    ...endOf(
      choice.finish_reason,
      choice.stop_reason,
      choice.message.tool_calls.length > 0,
      usage,
      maxTokens,
    ),
    usage: toUsage(usage),
  };
}

export function emptyMessage(chatId: string, model: string): Omit<MessageResponse, 'usage'> {
  return {
    id: `msg_${chatId.replace(/^chatcmpl-/, '')}`,
    type: 'message',
    role: 'assistant',
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    stop_details: null,
    container: null,
    diagnostics: null,
  };
}

/** Returns why a message ended. An answer that was cut below its limit filled the context. */
export function endOf(
  finish: FinishReason,
  stop: number | string | null | undefined,
  hasCalls: boolean,
  usage: Usage | null,
  maxTokens: number,
): { stop_reason: MessageStopReason; stop_sequence: string | null } {
  if (finish === 'length') {
    const isFull = usage !== null && usage.completion_tokens < maxTokens;
    return { stop_reason: isFull ? 'model_context_window_exceeded' : 'max_tokens', stop_sequence: null };
  }
  if (typeof stop === 'string') return { stop_reason: 'stop_sequence', stop_sequence: stop };
  return { stop_reason: hasCalls ? 'tool_use' : 'end_turn', stop_sequence: null };
}

/** Returns the token counts. Cached prompt tokens are counted separately. */
export function toUsage(usage: Usage | null): MessageUsage {
  const unknown = { cache_creation: null, service_tier: null, inference_geo: null, speed: null };
  return { ...countsOf(usage), ...unknown };
}

/** Returns the token counts at the end of a stream. */
export function countsOf(usage: Usage | null) {
  const cached = usage?.prompt_tokens_details?.cached_tokens ?? 0;
  return {
    input_tokens: (usage?.prompt_tokens ?? 0) - cached,
    output_tokens: usage?.completion_tokens ?? 0,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: 0,
    output_tokens_details: null,
    server_tool_use: null,
  };
}

function toBlocks({ message }: ChatCompletionChoice): MessageResponseBlock[] {
  const { reasoning, content, tool_calls } = message;
  const blocks: MessageResponseBlock[] = [];
  if (reasoning) blocks.push({ type: 'thinking', thinking: reasoning, signature: UNSIGNED });
  if (content) blocks.push({ type: 'text', text: content, citations: [] });
  for (const call of tool_calls)
    if (call.type === 'function')
      blocks.push({
        type: 'tool_use',
        id: call.id,
        name: call.function.name,
        input: parseJson(call.function.arguments || '{}', {}), // empty if the call was cut off
        caller: { type: 'direct' },
      });
  return blocks;
}
