/** A request and its answer -> the parts that a trajectory keeps: ids and log-probabilities, without other fields. */
import { OnpolicyError } from '../../errors.ts';
import type {
  ChatCompletion,
  ChatCompletionChunk,
  Message,
  RoutedExperts,
  TextCompletionChunkChoice,
  Tool,
  TrajectoryChoice,
} from '../../protocol/index.ts';
import { JoinedMessage } from '../../protocol/service/index.ts';

/** One answered request. */
export type Exchange = {
  readonly messages: readonly Message[];
  readonly tools: readonly Tool[] | null;
  /** At least one. */
  readonly choices: readonly TrajectoryChoice[];
};

/** One choice of a text completion: complete, or in one chunk. */
type TextPart = Pick<
  TextCompletionChunkChoice,
  'index' | 'text' | 'finish_reason' | 'logprobs' | 'token_ids' | 'prompt_token_ids'
>;

/** New parts of one choice. Those of text completions have a separate prompt. */
type Part = Omit<ChatCompletionChunk['choices'][number], 'finish_reason'> &
  Pick<TextPart, 'finish_reason' | 'prompt_token_ids'>;

/** New parts of several choices. */
type Chunk = Pick<ChatCompletionChunk, 'prompt_token_ids'> & { readonly choices: readonly Part[] };

/** Converts a complete answer to one chunk. */
export function wholeChunk({ choices, prompt_token_ids }: ChatCompletion): Chunk {
  const parts = choices.map(({ message, ...choice }) => {
    const tool_calls = (message.tool_calls ?? []).map((call, index) => ({ index, ...call }));
    return { ...choice, delta: { ...message, tool_calls } as Part['delta'] };
  });
  return { prompt_token_ids: prompt_token_ids ?? null, choices: parts };
}

/**
 * Converts choices of a text completion to those of a chat. There are no messages: the ids of each prompt are the context.
 * @throws OnpolicyError `UNSUPPORTED` if the service gives no token ids or log-probabilities
 */
export function textChunk(parts: readonly TextPart[]): Chunk {
  const choices = parts.map(({ text, logprobs, token_ids, ...part }): Part => {
    const ids = token_ids ?? [];
    const first = (logprobs?.tokens.length ?? 0) - ids.length; // tokens of an echoed prompt come first
    if (!token_ids || !logprobs || first < 0) throw withoutIds();
    const content = ids.map((_, i) => ({
      token: logprobs.tokens[first + i]!,
      logprob: logprobs.token_logprobs[first + i] as number,
    }));
    return { ...part, delta: { content: text }, token_ids, logprobs: { content } as Part['logprobs'] };
  });
  return { choices };
}

/** A choice that is being received. */
class Growing {
  role = 'assistant';
  readonly message = new JoinedMessage();
  isScored = false;
  readonly logprobs: { token: string; logprob: number }[] = [];
  readonly ids: number[] = [];
  promptIds: readonly number[] | null = null;
  finish: string | null = null;
  experts: RoutedExperts | null = null;
}

/** Joins the chunks of a stream to choices, as far as they were received. */
export class ChunkJoiner {
  readonly #choices: Growing[] = [];
  #promptIds: readonly number[] | null = null;

  /** Adds a chunk. @throws OnpolicyError `UNSUPPORTED` if the service gives no token ids or log-probabilities */
  add(chunk: Chunk): void {
    this.#promptIds = chunk.prompt_token_ids ?? this.#promptIds;
    for (const { index, delta, ...part } of chunk.choices) {
      this.#choices[index] ??= new Growing();
      const choice = this.#choices[index]!;
      choice.role = delta.role ?? choice.role;
      choice.message.add(delta);
      choice.isScored ||= Boolean(part.logprobs?.content);
      for (const { token, logprob } of part.logprobs?.content ?? []) choice.logprobs.push({ token, logprob });
      for (const id of part.token_ids ?? []) choice.ids.push(id);
      choice.promptIds ??= part.prompt_token_ids ?? this.#promptIds;
      choice.finish = part.finish_reason ?? choice.finish;
      choice.experts = part.routed_experts ?? choice.experts;
      const hasIds = choice.isScored && choice.ids.length >= choice.logprobs.length;
      if (!choice.promptIds || (choice.finish !== null && !hasIds)) throw withoutIds();
    }
  }

  /** Returns the choices received so far, without those that have no token. */
  choices(): TrajectoryChoice[] {
    return this.#choices.flatMap((choice, index) => {
      const { role, message, logprobs, ids, finish, experts } = choice;
      if (ids.length === 0) return [];
      return [
        {
          index,
          finish_reason: finish,
          message: messageOf(role, message),
          logprobs: { content: [...logprobs] },
          token_ids: [...ids],
          prompt_token_ids: choice.promptIds,
          ...(experts ? { routed_experts: experts } : {}),
        },
      ];
    });
  }
}

function messageOf(
  role: string,
  { content, reasoning, calls, functionCall }: JoinedMessage,
): TrajectoryChoice['message'] {
  return {
    role,
    content,
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...(functionCall ? { function_call: functionCall } : {}),
    ...(reasoning ? { reasoning } : {}),
  };
}

function withoutIds(): OnpolicyError {
  return new OnpolicyError(
    'UNSUPPORTED',
    'the service returns no token ids or log-probabilities, so its answers cannot be recorded for training',
  );
}
