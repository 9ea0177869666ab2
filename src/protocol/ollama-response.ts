/** Answers of Ollama's API. */
import type { TokenLogprob } from './chat-completion-response.ts';
import type { JsonObject } from './generated/request-types.ts';

/** A part of an answer to `POST /api/chat`, or the whole answer. */
export interface OllamaChatPart extends OllamaPart {
  message: {
    role: 'assistant';
    content: string;
    thinking?: string;
    /** Complete calls. */
    tool_calls?: OllamaCallOutput[];
  };
}

/** A part of an answer to `POST /api/generate`, or the whole answer. */
export interface OllamaGeneratePart extends OllamaPart {
  response: string;
  thinking?: string;
}

/** Fields that the parts of both endpoints share. */
export interface OllamaPart extends Partial<OllamaCounts> {
  /** The model as the caller named it. */
  model: string;
  /** Time in ISO 8601. */
  created_at: string;
  done: boolean;
  /** The reason why the answer ended. Only in the last part. */
  done_reason?: 'stop' | 'length' | 'load' | 'unload';
  /** Log-probabilities of the new tokens. */
  logprobs?: TokenLogprob[];
}

/** Counts and times of the last part. Durations are in nanoseconds. */
export interface OllamaCounts {
  /** Time from the request to the end of the answer. */
  total_duration: number;
  /** Time from the request until the model was loaded. */
  load_duration: number;
  prompt_eval_count: number;
  /** Time from the end of loading to the first token. */
  prompt_eval_duration: number;
  eval_count: number;
  /** Time from the first token to the end of the answer. */
  eval_duration: number;
}

/** A tool call. */
export interface OllamaCallOutput {
  /** Id that the result refers to. */
  id: string;
  function: {
    /** Index of the call in the answer. */
    index: number;
    name: string;
    arguments: JsonObject;
  };
}

/** The vectors of texts. */
export interface OllamaEmbedResponse {
  model: string;
  /** One vector per text. */
  embeddings: number[][];
  /** Nanoseconds. */
  total_duration: number;
  /** Always 0: loading is included in `total_duration`. */
  load_duration: number;
  /** Tokens of all texts. */
  prompt_eval_count: number;
}
