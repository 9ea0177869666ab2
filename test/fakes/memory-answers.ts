/** A text -> the answer that has it, whole or a chunk of a stream. */
import type { ChatCompletion, ChatCompletionChunk } from '../../src/protocol/index.ts';

/** Fields that an answer and its chunks share. */
type Header = { readonly id: string; readonly created: number; readonly model: string };

/** A whole answer. */
export function answerOf(header: Header, content: string): ChatCompletion {
  return {
    ...header,
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content,
          refusal: null,
          annotations: null,
          audio: null,
          function_call: null,
          tool_calls: [],
          reasoning: null,
          reasoning_content: null,
        },
        logprobs: null,
        finish_reason: 'stop',
        stop_reason: null,
        token_ids: null,
      },
    ],
    service_tier: null,
    system_fingerprint: 'memory',
    seed: null,
    usage: { prompt_tokens: 0, total_tokens: 0, completion_tokens: 0 },
    prompt_logprobs: null,
    prompt_token_ids: null,
    kv_transfer_params: null,
  };
}

/** A part of one. */
export function chunkOf(
  header: Header,
  delta: ChatCompletionChunk['choices'][0]['delta'],
  finish_reason: 'stop' | null,
): ChatCompletionChunk {
  return {
    ...header,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
  };
}
