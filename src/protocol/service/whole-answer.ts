/** The chunks of a chat completion -> the whole answer, as the same request without `stream` gets it. */
import { OnpolicyError } from '../../errors.ts';
import type {
  ChatCompletion,
  ChatCompletionChoice,
  ChatCompletionChunk,
  ChunkChoice,
  Usage,
} from '../index.ts';
import { JoinedMessage } from './joined-message.ts';

/** The whole answer of a stream. Its usage is null unless the request had `stream_options: { include_usage: true }`. */
export type StreamedCompletion = Omit<ChatCompletion, 'usage'> & { usage: Usage | null };

/** A choice that is being received. */
type Growing = {
  readonly message: JoinedMessage;
  logprobs: ChatCompletionChoice['logprobs'];
  tokenIds: number[] | null;
  /** The last chunk of the choice. */
  end: ChunkChoice | null;
};

/** Joins the chunks of one answer. */
export class WholeAnswer {
  readonly #choices: Growing[] = [];
  /** The fields of the chunks. Its choices are not used. */
  readonly #fields: Partial<ChatCompletionChunk> = {};

  /** The id in the chunks. Null before the first one. */
  get id(): string | null {
    return this.#fields.id ?? null;
  }

  add(chunk: ChatCompletionChunk): void {
    if (this.id === null || hasReport(chunk)) Object.assign(this.#fields, chunk);
    for (const choice of chunk.choices) this.#grow(choice);
  }

  /** @throws OnpolicyError `ABORTED` if chunks are missing, because the stream was left */
  whole(): StreamedCompletion {
    const { id = '', created = 0, model = '', system_fingerprint = '', ...rest } = this.#fields;
    return {
      id,
      object: 'chat.completion',
      created,
      model,
      choices: Array.from(this.#choices, toChoice),
      service_tier: null,
      system_fingerprint,
      seed: rest.seed ?? null,
      usage: rest.usage ?? null,
      prompt_logprobs: null,
      prompt_token_ids: rest.prompt_token_ids ?? null,
      kv_transfer_params: null,
      ...(rest.metrics ? { metrics: rest.metrics } : {}),
      ...(rest.timings ? { timings: rest.timings } : {}),
      ...(rest.warnings ? { warnings: rest.warnings } : {}),
    };
  }

  #grow(part: ChunkChoice): void {
    this.#choices[part.index] ??= { message: new JoinedMessage(), logprobs: null, tokenIds: null, end: null };
    const choice = this.#choices[part.index]!;
    choice.message.add(part.delta);
    if (part.logprobs) {
      choice.logprobs ??= { content: [], refusal: null };
      for (const token of part.logprobs.content) choice.logprobs.content.push(token);
    }
    if (part.token_ids) {
      choice.tokenIds ??= [];
      for (const token of part.token_ids) choice.tokenIds.push(token);
    }
    if (part.finish_reason !== null) choice.end = part;
  }
}

/** Returns true if a chunk has more than its choices and the fields that all chunks repeat. */
function hasReport(chunk: ChatCompletionChunk): boolean {
  const { system_fingerprint, usage, timings, metrics, warnings, prompt_token_ids, seed } = chunk;
  return Boolean(
    system_fingerprint || usage || timings || metrics || warnings || prompt_token_ids || seed != null,
  );
}

function toChoice(choice: Growing | undefined, index: number): ChatCompletionChoice {
  if (!choice?.end) throw new OnpolicyError('ABORTED', 'the stream was left before its end');
  const { end } = choice;
  const { content, reasoning, calls, functionCall } = choice.message;
  return {
    index,
    message: {
      role: 'assistant',
      content,
      refusal: null,
      annotations: null,
      audio: null,
      function_call: functionCall,
      tool_calls: calls,
      reasoning,
      reasoning_content: reasoning,
    },
    logprobs: choice.logprobs,
    finish_reason: end.finish_reason!,
    stop_reason: end.stop_reason ?? null,
    token_ids: choice.tokenIds,
    ...(end.routed_experts ? { routed_experts: end.routed_experts } : {}),
    ...(end.context_shift ? { context_shift: end.context_shift } : {}),
  };
}
