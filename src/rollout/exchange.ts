/** A request and its answer -> what a trajectory keeps of them: ids and log-probabilities, no other fields. */
import { OnpolicyError } from '../errors.ts';
import type {
  ChatCompletion,
  ChatCompletionChunk,
  FunctionCall,
  Message,
  RoutedExperts,
  TextCompletionChunkChoice,
  Tool,
  ToolCall,
  TrajectoryChoice,
} from '../protocol/index.ts';

/** One request that was answered. */
export type Exchange = {
  readonly messages: readonly Message[];
  readonly tools: readonly Tool[] | null;
  /** At least one. */
  readonly choices: readonly TrajectoryChoice[];
};

/** What a text completion gives of one choice: as a whole, or in one chunk. */
type TextPart = Pick<
  TextCompletionChunkChoice,
  'index' | 'text' | 'finish_reason' | 'logprobs' | 'token_ids' | 'prompt_token_ids'
>;

/** What is new in one choice. Those of text completions have a prompt each. */
type Part = Omit<ChatCompletionChunk['choices'][number], 'finish_reason'> &
  Pick<TextPart, 'finish_reason' | 'prompt_token_ids'>;

/** What is new in several choices. */
type Chunk = Pick<ChatCompletionChunk, 'prompt_token_ids'> & { readonly choices: readonly Part[] };

/** A whole answer as one chunk. */
export function wholeChunk({ choices, prompt_token_ids }: ChatCompletion): Chunk {
  const parts = choices.map(({ message, ...choice }) => {
    const tool_calls = (message.tool_calls ?? []).map((call, index) => ({ index, ...call }));
    return { ...choice, delta: { ...message, tool_calls } as Part['delta'] };
  });
  return { prompt_token_ids: prompt_token_ids ?? null, choices: parts };
}

/**
 * Choices of a text completion as those of a chat. There are no messages: what was continued are the ids of each prompt.
 * @throws OnpolicyError `UNSUPPORTED` when the service gives no token ids or log-probabilities
 */
export function textChunk(parts: readonly TextPart[]): Chunk {
  const choices = parts.map(({ text, logprobs, token_ids, ...part }): Part => {
    const ids = token_ids ?? [];
    const first = (logprobs?.tokens.length ?? 0) - ids.length; // those of an echo stand before
    if (!token_ids || !logprobs || first < 0) throw withoutIds();
    const content = ids.map((_, i) => ({
      token: logprobs.tokens[first + i]!,
      logprob: logprobs.token_logprobs[first + i] as number,
    }));
    return { ...part, delta: { content: text }, token_ids, logprobs: { content } as Part['logprobs'] };
  });
  return { choices };
}

/** A choice of which nothing has come. */
class Growing {
  role = 'assistant';
  content = '';
  reasoning = '';
  readonly calls: { id: string; name: string; text: string; isCustom: boolean }[] = [];
  functionCall: { name: string; arguments: string } | null = null;
  isScored = false;
  readonly logprobs: { token: string; logprob: number }[] = [];
  readonly ids: number[] = [];
  promptIds: readonly number[] | null = null;
  finish: string | null = null;
  experts: RoutedExperts | null = null;
}

/** Joins the chunks of a stream to choices, as far as they came. */
export class ChunkJoiner {
  readonly #choices: Growing[] = [];
  #promptIds: readonly number[] | null = null;

  /** @throws OnpolicyError `UNSUPPORTED` when the service gives no token ids or log-probabilities */
  add(chunk: Chunk): void {
    this.#promptIds = chunk.prompt_token_ids ?? this.#promptIds;
    for (const { index, delta, ...part } of chunk.choices) {
      this.#choices[index] ??= new Growing();
      const choice = this.#choices[index]!;
      choice.role = delta.role ?? choice.role;
      choice.content += delta.content ?? '';
      choice.reasoning += delta.reasoning ?? delta.reasoning_content ?? '';
      for (const call of delta.tool_calls ?? []) {
        choice.calls[call.index] ??= { id: '', name: '', text: '', isCustom: call.type === 'custom' };
        const known = choice.calls[call.index]!;
        known.id = call.id ?? known.id;
        known.name = call.function?.name ?? call.custom?.name ?? known.name;
        known.text += call.function?.arguments ?? call.custom?.input ?? '';
      }
      if (delta.function_call) {
        choice.functionCall ??= { name: '', arguments: '' };
        choice.functionCall.name += delta.function_call.name ?? '';
        choice.functionCall.arguments += delta.function_call.arguments ?? '';
      }
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

  /** What came so far; choices without a token are left out. */
  choices(): TrajectoryChoice[] {
    return this.#choices.flatMap((choice, index) => {
      const { role, content, reasoning, calls, functionCall, logprobs, ids, finish, experts } = choice;
      if (ids.length === 0) return [];
      const toolCalls = calls.map(
        ({ id, name, text, isCustom }): ToolCall =>
          isCustom
            ? { id, type: 'custom', custom: { name, input: text } }
            : { id, type: 'function', function: { name, arguments: text } },
      );
      return [
        {
          index,
          finish_reason: finish,
          message: messageOf(role, content, toolCalls, reasoning, functionCall),
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
  content: string,
  calls: readonly ToolCall[],
  reasoning: string,
  functionCall: FunctionCall | null,
): TrajectoryChoice['message'] {
  const isElsewhere = calls.length > 0 || functionCall !== null || reasoning !== '';
  return {
    role,
    content: content || (isElsewhere ? null : ''),
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
