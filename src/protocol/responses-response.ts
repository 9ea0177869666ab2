/** What a request of the responses API is answered with: one response, or events. Accepted by the types of OpenAI's client. */
import type { TokenLogprob } from './chat-completion-response.ts';
import type { ResponseRequest } from './generated/request-types.ts';

/** The answer to a request that does not stream, and what a store gives back. */
export interface ResponseObject {
  /** `resp_` and the request's id. */
  id: string;
  /** Says what this is. */
  object: 'response';
  /** Seconds since 1970. */
  created_at: number;
  /** Seconds since 1970; null while it runs. */
  completed_at: number | null;
  /** How far it is. */
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
  /** Of the request. */
  instructions: string | null;
  /** Of the request. */
  previous_response_id: string | null;
  /** Of the request. */
  max_output_tokens: number | null;
  /** Of the request. */
  reasoning: {
    effort: (NonNullable<ResponseRequest['reasoning']>['effort'] & string) | null;
    summary: 'auto' | 'concise' | 'detailed' | null;
  };
  /** Of the request. */
  temperature: number | null;
  /** Of the request. */
  top_p: number | null;
  /** Of the request. */
  parallel_tool_calls: boolean;
  /** Of the request. */
  tool_choice:
    | 'none'
    | 'auto'
    | 'required'
    | { type: 'function' | 'custom'; name: string }
    | { type: 'allowed_tools'; mode: 'auto' | 'required'; tools: Record<string, unknown>[] };
  /** Of the request. */
  tools: (
    | {
        type: 'function';
        name: string;
        description?: string | null;
        parameters: Record<string, unknown> | null;
        strict: boolean | null;
      }
    | { type: 'custom'; name: string; description?: string; format?: ResponseCustomFormat }
  )[];
  /** Of the request. */
  // biome-ignore lint/suspicious/noExplicitAny: the caller's own form
  text: any;
  /** Of the request. */
  truncation: 'auto' | 'disabled';
  /** Of the request. */
  metadata: Record<string, string>;
  /** Whether it is kept. */
  store: boolean;
  /** Always false. */
  background: false;
}

/** What the input of a custom tool may be. */
export type ResponseCustomFormat =
  | { type: 'text' }
  | { type: 'grammar'; syntax: 'lark' | 'regex'; definition: string };

/** Tokens of a request. */
export interface ResponseUsage {
  /** Prompt tokens. */
  input_tokens: number;
  /** Prompt tokens that the prefix cache saved. */
  input_tokens_details: { cached_tokens: number; cache_write_tokens: number };
  /** Tokens of the answer. */
  output_tokens: number;
  /** Tokens of thoughts, without their markers. */
  output_tokens_details: { reasoning_tokens: number };
  /** Both together. */
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
  /** Its id. */
  id: string;
  /** Kind of the item. */
  type: 'reasoning';
  /** How far it is. */
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
  /** Its id. */
  id: string;
  /** Kind of the item. */
  type: 'message';
  /** Who speaks. */
  role: 'assistant';
  /** How far it is. */
  status: 'in_progress' | 'completed' | 'incomplete';
  /** One part. */
  content: ResponseTextOutput[];
}

/** The text of a message. */
export interface ResponseTextOutput {
  /** Kind of the part. */
  type: 'output_text';
  /** The text. */
  text: string;
  /** Always empty. */
  annotations: never[];
  /** Of its tokens; empty unless asked for. */
  logprobs: TokenLogprob[];
}

/** A call. */
export interface ResponseCallOutput {
  /** Its id as an item. */
  id: string;
  /** Kind of the item. */
  type: 'function_call';
  /** Id that the result refers to. */
  call_id: string;
  /** What is called. */
  name: string;
  /** JSON text of the arguments. */
  arguments: string;
  /** How far it is. */
  status: 'in_progress' | 'completed' | 'incomplete';
}

/** A call of a custom tool. */
export interface ResponseCustomCallOutput {
  /** Its id as an item. */
  id: string;
  /** Kind of the item. */
  type: 'custom_tool_call';
  /** Id that the result refers to. */
  call_id: string;
  /** What is called. */
  name: string;
  /** The text that it is called with. */
  input: string;
  /** How far it is. */
  status: 'in_progress' | 'completed' | 'incomplete';
}

/** What became of a stored response. */
export interface ResponseDeletion {
  /** Its id. */
  id: string;
  /** Says what this is. */
  object: 'response';
  /** It is gone. */
  deleted: true;
}

/** The input of a stored response. */
export interface ResponseItemList {
  /** Says what this is. */
  object: 'list';
  /** Its own items, without those of earlier responses, newest first by default. */
  data: ResponseStoredItem[];
  /** Whether others come after them. */
  has_more: boolean;
  /** Id of the first one; null: there is none. */
  first_id: string | null;
  /** Id of the last one; null: there is none. */
  last_id: string | null;
}

/** An item of the input as it is stored: messages have a list of parts. */
export interface ResponseStoredItem {
  /** Its id. */
  id: string;
  /** Kind of the item. */
  type: string;
  /** The fields that items of its kind have. */
  [field: string]: unknown;
}

/** How many tokens a prompt has. */
export interface ResponseTokensCount {
  /** Says what this is. */
  object: 'response.input_tokens';
  /** With those of pictures and sounds. */
  input_tokens: number;
}

/** What became of a conversation. Its output is the input of the next request. */
export interface ResponseCompaction {
  /** Its id. */
  id: string;
  /** Says what this is. */
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
  /** Its id. */
  id: string;
  /** Kind of the item. */
  type: 'compaction';
  /** A summary, in Base64. */
  encrypted_content: string;
}

/** One event of a stream, without its number. */
export type ResponseEventBody =
  | { type: 'response.created' | 'response.in_progress'; response: ResponseObject }
  | { type: 'response.completed' | 'response.incomplete' | 'response.failed'; response: ResponseObject }
  | {
      type: 'response.output_item.added' | 'response.output_item.done';
      output_index: number;
      item: ResponseOutputItem;
    }
  | {
      type: 'response.content_part.added' | 'response.content_part.done';
      item_id: string;
      output_index: number;
      content_index: number;
      part: ResponseTextOutput | { type: 'reasoning_text'; text: string };
    }
  | {
      type: 'response.output_text.delta';
      item_id: string;
      output_index: number;
      content_index: number;
      delta: string;
      logprobs: TokenLogprob[];
    }
  | {
      type: 'response.output_text.done';
      item_id: string;
      output_index: number;
      content_index: number;
      text: string;
      logprobs: TokenLogprob[];
    }
  | {
      type: 'response.reasoning_text.delta';
      item_id: string;
      output_index: number;
      content_index: number;
      delta: string;
    }
  | {
      type: 'response.reasoning_text.done';
      item_id: string;
      output_index: number;
      content_index: number;
      text: string;
    }
  | {
      type: 'response.reasoning_summary_part.added' | 'response.reasoning_summary_part.done';
      item_id: string;
      output_index: number;
      summary_index: number;
      part: { type: 'summary_text'; text: string };
    }
  | {
      type: 'response.reasoning_summary_text.delta';
      item_id: string;
      output_index: number;
      summary_index: number;
      delta: string;
    }
  | {
      type: 'response.reasoning_summary_text.done';
      item_id: string;
      output_index: number;
      summary_index: number;
      text: string;
    }
  | {
      type: 'response.function_call_arguments.delta' | 'response.custom_tool_call_input.delta';
      item_id: string;
      output_index: number;
      delta: string;
    }
  | { type: 'response.custom_tool_call_input.done'; item_id: string; output_index: number; input: string }
  | {
      type: 'response.function_call_arguments.done';
      item_id: string;
      output_index: number;
      name: string;
      arguments: string;
    };

/** One event of a stream. */
export type ResponseStreamEvent = ResponseEventBody & {
  /** Its place in the stream, from 0. */
  sequence_number: number;
};
