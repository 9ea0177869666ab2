/** What a request of the responses API is answered with: one response, or events. Accepted by the types of OpenAI's client. */
import type { TokenLogprob } from './chat-completion-response.ts';
import type { ResponseRequest } from './generated/request-types.ts';

/** The answer to a request that does not stream, and what a store gives back. */
export interface ResponseObject extends ResponseSettings {
  /** `resp_` and the request's id. */
  id: string;
  object: 'response';
  /** Seconds since 1970. */
  created_at: number;
  /** Seconds since 1970; null while it runs. */
  completed_at: number | null;
  status: 'in_progress' | 'completed' | 'incomplete' | 'failed';
  /** Why it failed; null: it did not. A request that fails before its first event has no response. */
  error: { code: 'server_error'; message: string } | null;
  /** Why it is not whole. */
  incomplete_details: { reason: 'max_output_tokens' } | null;
  /** The model as the caller named it. */
  model: string;
  /** Thoughts, text and calls, in this order. */
  output: ResponseOutputItem[];
  /** The text of all messages in `output`. */
  output_text: string;
  /** Tokens of the request; null while it runs. Its type is open because OpenAI's has no null here. */
  // biome-ignore lint/suspicious/noExplicitAny: null is not in the OpenAI client's type, and any other type would not be true
  usage: ResponseUsage | any;
  background: false;
}

/** What a response repeats of its request, with what stands for absent fields. */
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
  // biome-ignore lint/suspicious/noExplicitAny: the caller's own form
  text: any;
  truncation: 'auto' | 'disabled';
  metadata: Record<string, string>;
  /** Whether it is kept. */
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

/** What the input of a custom tool may be. */
export type ResponseCustomFormat =
  | { type: 'text' }
  | { type: 'grammar'; syntax: 'lark' | 'regex'; definition: string };

/** Tokens of a request. */
export interface ResponseUsage {
  input_tokens: number;
  /** Prompt tokens that the prefix cache saved. */
  input_tokens_details: { cached_tokens: number; cache_write_tokens: number };
  output_tokens: number;
  /** Tokens of thoughts, without their markers. */
  output_tokens_details: { reasoning_tokens: number };
  total_tokens: number;
}

/** An item of an answer. It can be given back in `input` as it is. */
export type ResponseOutputItem =
  | ResponseReasoningOutput
  | ResponseMessageOutput
  | ResponseCallOutput
  | ResponseCustomCallOutput;

/** Thoughts of the model. */
export interface ResponseReasoningOutput {
  id: string;
  type: 'reasoning';
  status: 'in_progress' | 'completed' | 'incomplete';
  /** The thoughts, where `reasoning.summary` asks for them here. */
  summary: { type: 'summary_text'; text: string }[];
  /** The thoughts otherwise. */
  content: { type: 'reasoning_text'; text: string }[];
  /** The thoughts in a form to give back, where `include` asks for it. */
  encrypted_content?: string;
}

/** Text of the model. */
export interface ResponseMessageOutput {
  id: string;
  type: 'message';
  role: 'assistant';
  status: 'in_progress' | 'completed' | 'incomplete';
  /** One part. */
  content: ResponseTextOutput[];
}

/** The text of a message. */
export interface ResponseTextOutput {
  type: 'output_text';
  text: string;
  annotations: never[];
  /** Of its tokens; empty unless asked for. */
  logprobs: TokenLogprob[];
}

/** A call of a tool of any kind. */
interface AnyCallOutput {
  id: string;
  /** Id that the result refers to. */
  call_id: string;
  name: string;
  /** The namespace of the tool, where it has one. */
  namespace?: string;
  status: 'in_progress' | 'completed' | 'incomplete';
}

/** A call. */
export interface ResponseCallOutput extends AnyCallOutput {
  type: 'function_call';
  /** JSON text of the arguments. */
  arguments: string;
}

/** A call of a custom tool. */
export interface ResponseCustomCallOutput extends AnyCallOutput {
  type: 'custom_tool_call';
  /** The text that it is called with. */
  input: string;
}

/** What became of a stored response. */
export interface ResponseDeletion {
  id: string;
  object: 'response';
  deleted: true;
}

/** The input of a stored response. */
export interface ResponseItemList {
  object: 'list';
  /** Its own items, without those of earlier responses, newest first by default. */
  data: ResponseStoredItem[];
  has_more: boolean;
  first_id: string | null;
  last_id: string | null;
}

/** An item of the input as it is stored: messages have a list of parts. */
export interface ResponseStoredItem {
  id: string;
  type: string;
  [field: string]: unknown;
}

/** How many tokens a prompt has. */
export interface ResponseTokensCount {
  object: 'response.input_tokens';
  /** With those of pictures and sounds. */
  input_tokens: number;
}

/** What became of a conversation. Its output is the input of the next request. */
export interface ResponseCompaction {
  id: string;
  object: 'response.compaction';
  /** Seconds since 1970. */
  created_at: number;
  /** The messages of the user, then what stands for the rest. */
  output: (ResponseStoredItem | ResponseCompactionOutput)[];
  /** Tokens of the request that wrote it. */
  usage: ResponseUsage;
}

/** What stands for the rest of a conversation. */
export interface ResponseCompactionOutput {
  id: string;
  type: 'compaction';
  /** A summary, in Base64. */
  encrypted_content: string;
}

/** Where the item of an event stands. */
type ItemPlace = { item_id: string; output_index: number };
/** Where the part of an item stands. */
type PartPlace = ItemPlace & { content_index: number };
/** Where the part of a summary stands. */
type SummaryPlace = ItemPlace & { summary_index: number };
type Named<Name extends string, End extends string> = `response.${Name}.${End}`;

/** One event of a stream, without its number. */
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
  /** Its place in the stream, from 0. */
  sequence_number: number;
};
