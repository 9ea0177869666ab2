/** What requests of Ollama's API are answered with. */
import type { TokenLogprob } from './chat-completion-response.ts';
import type { JsonObject } from './generated/request-types.ts';

/** A part of an answer to `POST /api/chat`, or all of it. */
export interface OllamaChatPart extends OllamaPart {
  message: {
    role: 'assistant';
    content: string;
    thinking?: string;
    /** Whole calls. */
    tool_calls?: OllamaCallOutput[];
  };
}

/** A part of an answer to `POST /api/generate`, or all of it. */
export interface OllamaGeneratePart extends OllamaPart {
  response: string;
  thinking?: string;
}

/** What parts of both have. */
export interface OllamaPart extends Partial<OllamaCounts> {
  /** The model as the caller named it. */
  model: string;
  /** Time in ISO 8601. */
  created_at: string;
  done: boolean;
  /** Why the answer ended, in the last part. */
  done_reason?: 'stop' | 'length' | 'load' | 'unload';
  /** Of the new tokens. */
  logprobs?: TokenLogprob[];
}

/** Numbers of the last part. Durations are nanoseconds. */
export interface OllamaCounts {
  /** From the request to the end. */
  total_duration: number;
  /** Until the model was there. */
  load_duration: number;
  prompt_eval_count: number;
  /** From then to the first token. */
  prompt_eval_duration: number;
  eval_count: number;
  /** From the first token to the end. */
  eval_duration: number;
}

/** A call. */
export interface OllamaCallOutput {
  /** Id that the result refers to. */
  id: string;
  function: {
    /** Its place among the calls. */
    index: number;
    name: string;
    arguments: JsonObject;
  };
}

/** The vectors of texts. */
export interface OllamaEmbedResponse {
  model: string;
  /** One for each text. */
  embeddings: number[][];
  /** Nanoseconds. */
  total_duration: number;
  /** Always 0: it is part of the total. */
  load_duration: number;
  /** Tokens of all texts. */
  prompt_eval_count: number;
}
