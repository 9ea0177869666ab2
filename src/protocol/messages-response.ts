/** Answers of the messages API: one message, or a stream of events. The types of Anthropic's client accept them. */

/** The answer to a request that does not stream. */
export interface MessageResponse {
  /** `msg_` and the request's id. */
  id: string;
  type: 'message';
  role: 'assistant';
  /** The model as the caller named it. */
  model: string;
  /** Reasoning, text and calls, in this order. */
  content: MessageResponseBlock[];
  /** The reason why the answer ended. Null at the start of a stream. */
  stop_reason: MessageStopReason | null;
  /** The text of `stop_sequences` that ended the answer. */
  stop_sequence: string | null;
  stop_details: null;
  usage: MessageUsage;
  container: null;
  diagnostics: null;
}

/** A block of an answer. It can be sent back in `messages` unchanged. */
export type MessageResponseBlock = MessageTextOutput | MessageThinkingOutput | MessageToolUseOutput;

/** A block of text. */
export interface MessageTextOutput {
  type: 'text';
  text: string;
  citations: never[];
}

/** A block of reasoning. */
export interface MessageThinkingOutput {
  type: 'thinking';
  thinking: string;
  /** Always `unsigned`. Clients need a text here to send the block back. */
  signature: string;
}

/** A tool call. */
export interface MessageToolUseOutput {
  type: 'tool_use';
  id: string;
  name: string;
  /** The arguments. Empty if the call was cut off. */
  input: unknown;
  caller: { type: 'direct' };
}

/** Why an answer ended. */
export type MessageStopReason =
  | 'end_turn'
  | 'max_tokens'
  | 'stop_sequence'
  | 'tool_use'
  | 'model_context_window_exceeded';

/** Tokens of a request. */
export interface MessageUsage {
  /** Prompt tokens that were computed. */
  input_tokens: number;
  output_tokens: number;
  /** Prompt tokens that came from the prefix cache. `input_tokens` does not include them. */
  cache_read_input_tokens: number;
  /** Always 0. */
  cache_creation_input_tokens: number;
  cache_creation: null;
  output_tokens_details: null;
  server_tool_use: null;
  service_tier: null;
  inference_geo: null;
  speed: null;
}

/** The number of tokens of a prompt. */
export interface MessageTokensCount {
  /** Tokens of the prompt, including those of pictures and sounds. */
  input_tokens: number;
}

/** One event of a stream. */
export type MessageStreamEvent =
  | { type: 'message_start'; message: MessageResponse }
  | { type: 'ping' }
  | { type: 'content_block_start'; index: number; content_block: MessageResponseBlock }
  | { type: 'content_block_delta'; index: number; delta: MessageBlockDelta }
  | { type: 'content_block_stop'; index: number }
  | {
      type: 'message_delta';
      delta: Pick<MessageResponse, 'stop_reason' | 'stop_sequence' | 'stop_details' | 'container'>;
      usage: Omit<MessageUsage, 'cache_creation' | 'service_tier' | 'inference_geo' | 'speed'>;
    }
  | { type: 'message_stop' };

/** New content of a block. */
export type MessageBlockDelta =
  | { type: 'text_delta'; text: string }
  | { type: 'thinking_delta'; thinking: string }
  | { type: 'signature_delta'; signature: string }
  | { type: 'input_json_delta'; partial_json: string };
