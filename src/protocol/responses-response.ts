/** Answers of the responses API: one response, or a stream of events. The types of OpenAI's client accept them. */
import type { TokenLogprob } from './chat-completion-response.ts';
import type { ResponseRequest } from './generated/request-types.ts';

/** The answer to a request that does not stream, and the form in which a stored response is returned. */
export interface ResponseObject extends ResponseSettings {
  /** `resp_` and the request's id. */
  id: string;
  object: 'response';
  /** Seconds since 1970. */
  created_at: number;
  /** Seconds since 1970. Null while the response is in progress. */
  completed_at: number | null;
  status: 'in_progress' | 'completed' | 'incomplete' | 'failed';
  /** The error. Null if the response did not fail. A request that fails before its first event has no response. */
  error: { code: 'server_error'; message: string } | null;
  /** The reason why the response is incomplete. */
  incomplete_details: { reason: 'max_output_tokens' } | null;
  /** The model as the caller named it. */
  model: string;
  /** Reasoning, text and calls, in this order. */
  output: ResponseOutputItem[];
  /** The text of all messages in `output`. */
  output_text: string;
  /** Tokens of the request. Null while it runs. The type is `any` because OpenAI's type does not allow null. */
  // biome-ignore lint/suspicious/noExplicitAny: null is not in the OpenAI client's type, and any other type would not be true
  usage: ResponseUsage | any;
  background: false;
}

/** Settings of the request that a response repeats, with defaults for absent fields. */
export interface ResponseSettings {
  instructions: string | null;
  previous_response_id: string | null;
  max_output_tokens: number | null;
  reasoning: {
    effort: (NonNullable<ResponseRequest['reasoning']>['effort'] & string) | null;
    summary: 'auto' | 'concise' | 'detailed' | null;
  };
  temperature: number | null;
  top_p: number | null;
  parallel_tool_calls: boolean;
  tool_choice:
    | 'none'
    | 'auto'
    | 'required'
    | { type: 'function' | 'custom'; name: string; namespace?: string | null | undefined }
    | { type: 'allowed_tools'; mode: 'auto' | 'required'; tools: Record<string, unknown>[] };
  tools: (
    | ResponseShownTool
    | { type: 'namespace'; name: string; description: string; tools: ResponseShownTool[] }
  )[];
  // biome-ignore lint/suspicious/noExplicitAny: the value that the caller gave
  text: any;
  truncation: 'auto' | 'disabled';
  metadata: Record<string, string>;
  /** True if the response is stored. */
  store: boolean;
}

/** A tool of a request. */
export type ResponseShownTool =
  | {
      type: 'function';
      name: string;
      description?: string | null;
      parameters: Record<string, unknown> | null;
      strict: boolean | null;
    }
  | { type: 'custom'; name: string; description?: string; format?: ResponseCustomFormat };

/** Format of a custom tool's input. */
export type ResponseCustomFormat =
  | { type: 'text' }
  | { type: 'grammar'; syntax: 'lark' | 'regex'; definition: string };

/** Tokens of a request. */
export interface ResponseUsage {
  input_tokens: number;
  /** Prompt tokens that came from the prefix cache, and those that were computed. */
  input_tokens_details: { cached_tokens: number; cache_write_tokens: number };
  output_tokens: number;
  /** Tokens of reasoning, without its markers. */
  output_tokens_details: { reasoning_tokens: number };
  total_tokens: number;
}

/** An item of an answer. It can be sent back in `input` unchanged. */
export type ResponseOutputItem =
  | ResponseReasoningOutput
  | ResponseMessageOutput
  | ResponseCallOutput
  | ResponseCustomCallOutput;

/** Reasoning of the model. */
export interface ResponseReasoningOutput {
  id: string;
  type: 'reasoning';
  status: 'in_progress' | 'completed' | 'incomplete';
  /** The reasoning, if `reasoning.summary` asks for it. */
  summary: { type: 'summary_text'; text: string }[];
  /** The reasoning, if it is not in `summary`. */
  content: { type: 'reasoning_text'; text: string }[];
  /** The reasoning in a form to send back, if `include` asks for it. */
  encrypted_content?: string;
}

/** A message of the model. */
export interface ResponseMessageOutput {
  id: string;
  type: 'message';
  role: 'assistant';
  status: 'in_progress' | 'completed' | 'incomplete';
  /** A list with one part. */
  content: ResponseTextOutput[];
}

/** The text of a message. */
export interface ResponseTextOutput {
  type: 'output_text';
  text: string;
  annotations: never[];
  /** Log-probabilities of the tokens. Empty unless requested. */
  logprobs: TokenLogprob[];
}

/** A call of a tool of any kind. */
interface AnyCallOutput {
  id: string;
  /** Id that the result refers to. */
  call_id: string;
  name: string;
  /** The namespace of the tool, if it has one. */
  namespace?: string;
  status: 'in_progress' | 'completed' | 'incomplete';
}

/** A call of a function. */
export interface ResponseCallOutput extends AnyCallOutput {
  type: 'function_call';
  /** JSON text of the arguments. */
  arguments: string;
}

/** A call of a custom tool. */
export interface ResponseCustomCallOutput extends AnyCallOutput {
  type: 'custom_tool_call';
  /** The text passed to the tool. */
  input: string;
}

/** Result of deleting a stored response. */
export interface ResponseDeletion {
  id: string;
  object: 'response';
  deleted: true;
}

/** The input of a stored response. */
export interface ResponseItemList {
  object: 'list';
  /** Items of this response only, without those of earlier responses. Newest first by default. */
  data: ResponseStoredItem[];
  has_more: boolean;
  first_id: string | null;
  last_id: string | null;
}

/** A stored item of the input. The content of messages is a list of parts. */
export interface ResponseStoredItem {
  id: string;
  type: string;
  [field: string]: unknown;
}

/** The number of tokens of a prompt. */
export interface ResponseTokensCount {
  object: 'response.input_tokens';
  /** Tokens of the prompt, including those of pictures and sounds. */
  input_tokens: number;
}

/** A compacted conversation. Its output is the input of the next request. */
export interface ResponseCompaction {
  id: string;
  object: 'response.compaction';
  /** Seconds since 1970. */
  created_at: number;
  /** The messages of the user, then an item that replaces the rest. */
  output: (ResponseStoredItem | ResponseCompactionOutput)[];
  /** Tokens of the request that wrote it. */
  usage: ResponseUsage;
}

/** An item that replaces the rest of a conversation by a summary. */
export interface ResponseCompactionOutput {
  id: string;
  type: 'compaction';
  /** The summary, in Base64. */
  encrypted_content: string;
}

/** The position of an event's item. */
type ItemPlace = { item_id: string; output_index: number };
/** The position of a part within its item. */
type PartPlace = ItemPlace & { content_index: number };
/** The position of a part within a summary. */
type SummaryPlace = ItemPlace & { summary_index: number };
type Named<Name extends string, End extends string> = `response.${Name}.${End}`;

/** One event of a stream, without its sequence number. */
export type ResponseEventBody =
  | { type: 'response.created' | 'response.in_progress'; response: ResponseObject }
  | { type: 'response.completed' | 'response.incomplete' | 'response.failed'; response: ResponseObject }
  | { type: Named<'output_item', 'added' | 'done'>; output_index: number; item: ResponseOutputItem }
  | (PartPlace & {
      type: Named<'content_part', 'added' | 'done'>;
      part: ResponseTextOutput | { type: 'reasoning_text'; text: string };
    })
  | (PartPlace & { type: 'response.output_text.delta'; delta: string; logprobs: TokenLogprob[] })
  | (PartPlace & { type: 'response.output_text.done'; text: string; logprobs: TokenLogprob[] })
  | (PartPlace & { type: 'response.reasoning_text.delta'; delta: string })
  | (PartPlace & { type: 'response.reasoning_text.done'; text: string })
  | (SummaryPlace & {
      type: Named<'reasoning_summary_part', 'added' | 'done'>;
      part: { type: 'summary_text'; text: string };
    })
  | (SummaryPlace & { type: 'response.reasoning_summary_text.delta'; delta: string })
  | (SummaryPlace & { type: 'response.reasoning_summary_text.done'; text: string })
  | (ItemPlace & {
      type: Named<'function_call_arguments' | 'custom_tool_call_input', 'delta'>;
      delta: string;
    })
  | (ItemPlace & { type: 'response.custom_tool_call_input.done'; input: string })
  | (ItemPlace & { type: 'response.function_call_arguments.done'; name: string; arguments: string });

/** One event of a stream. */
export type ResponseStreamEvent = ResponseEventBody & {
  /** Index of the event in the stream, from 0. */
  sequence_number: number;
};
