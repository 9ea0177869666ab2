/** What a request of the messages API is answered with: one message, or events. Accepted by the types of Anthropic's client. */

/** The answer to a request that does not stream. */
export interface MessageResponse {
  /** `msg_` and the request's id. */
  id: string;
  /** Says what this is. */
  type: 'message';
  /** Who speaks. */
  role: 'assistant';
  /** The model as the caller named it. */
  model: string;
  /** Thoughts, text and calls, in this order. */
  content: MessageResponseBlock[];
  /** Why it ended; null at the start of a stream. */
  stop_reason: MessageStopReason | null;
  /** The text of `stop_sequences` that ended it. */
  stop_sequence: string | null;
  /** Always null. */
  stop_details: null;
  /** Tokens of the request. */
  usage: MessageUsage;
  /** Always null. */
  container: null;
  /** Always null. */
  diagnostics: null;
}

/** A piece of an answer. It can be given back in `messages` as it is. */
export type MessageResponseBlock = MessageTextOutput | MessageThinkingOutput | MessageToolUseOutput;

/** Text. */
export interface MessageTextOutput {
  /** Kind of the block. */
  type: 'text';
  /** The text. */
  text: string;
  /** Always empty. */
  citations: never[];
}

/** Thoughts of the model. */
export interface MessageThinkingOutput {
  /** Kind of the block. */
  type: 'thinking';
  /** The thoughts. */
  thinking: string;
  /** Always `unsigned`: clients want a text here to give the block back. */
  signature: string;
}

/** A call. */
export interface MessageToolUseOutput {
  /** Kind of the block. */
  type: 'tool_use';
  /** Its id. */
  id: string;
  /** What is called. */
  name: string;
  /** The arguments; empty for a call that broke off. */
  input: unknown;
  /** Who calls: always the model itself. */
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
  /** Tokens of the answer. */
  output_tokens: number;
  /** Prompt tokens that the prefix cache saved. They are not in `input_tokens`. */
  cache_read_input_tokens: number;
  /** Always 0. */
  cache_creation_input_tokens: number;
  /** Always null. */
  cache_creation: null;
  /** Always null. */
  output_tokens_details: null;
  /** Always null. */
  server_tool_use: null;
  /** Always null. */
  service_tier: null;
  /** Always null. */
  inference_geo: null;
  /** Always null. */
  speed: null;
}

/** How many tokens a prompt has. */
export interface MessageTokensCount {
  /** With those of pictures and sounds. */
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

/** What is new of a block. */
export type MessageBlockDelta =
  | { type: 'text_delta'; text: string }
  | { type: 'thinking_delta'; thinking: string }
  | { type: 'signature_delta'; signature: string }
  | { type: 'input_json_delta'; partial_json: string };
