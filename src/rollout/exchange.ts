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

/**
 * The choices of a whole answer.
 * @throws OnpolicyError `UNSUPPORTED` when the service gives no token ids or log-probabilities
 */
export function choicesOf({ choices, prompt_token_ids }: ChatCompletion): TrajectoryChoice[] {
  return choices.map(({ index, message, finish_reason, logprobs, token_ids, routed_experts }) => {
    if (!token_ids || !prompt_token_ids || !logprobs?.content) throw withoutIds();
    const { role, content, tool_calls, reasoning } = message;
    const old = message.function_call;
    return {
      index,
      finish_reason,
      message: messageOf(role, content, tool_calls ?? [], reasoning, old ?? null),
      logprobs: { content: logprobs.content.map(({ token, logprob }) => ({ token, logprob })) },
      token_ids,
      prompt_token_ids,
      ...(routed_experts ? { routed_experts } : {}),
    };
  });
}

/** What a text completion gives of one choice: as a whole, or in one chunk. */
type TextPart = Pick<
  TextCompletionChunkChoice,
  'index' | 'text' | 'finish_reason' | 'logprobs' | 'token_ids' | 'prompt_token_ids'
>;

/** Joins the parts of text completions to choices. There are no messages: what was continued are the ids of each prompt. */
export class TextJoiner {
  readonly #choices: { text: string; finish: string | null; promptIds: readonly number[] | null }[] = [];
  readonly #tokens: { ids: number[]; logprobs: { token: string; logprob: number }[] }[] = [];

  /** @throws OnpolicyError `UNSUPPORTED` when the service gives no token ids or log-probabilities */
  add(parts: readonly TextPart[]): void {
    for (const { index, text, finish_reason, logprobs, token_ids, prompt_token_ids } of parts) {
      this.#choices[index] ??= { text: '', finish: null, promptIds: null };
      this.#tokens[index] ??= { ids: [], logprobs: [] };
      const choice = this.#choices[index]!;
      const tokens = this.#tokens[index]!;
      choice.text += text;
      choice.finish = (finish_reason as string | null) ?? choice.finish;
      choice.promptIds ??= prompt_token_ids ?? null;
      const ids = token_ids ?? [];
      const first = (logprobs?.tokens.length ?? 0) - ids.length; // those of an echo stand before
      if (!choice.promptIds || !token_ids || !logprobs || first < 0) throw withoutIds();
      for (const [i, id] of ids.entries()) {
        tokens.ids.push(id);
        tokens.logprobs.push({
          token: logprobs.tokens[first + i]!,
          logprob: logprobs.token_logprobs[first + i] as number,
        });
      }
    }
  }

  /** What came so far, each an exchange of its own; choices without a token are left out. */
  exchanges(): Exchange[] {
    return this.#choices.flatMap(({ text, finish, promptIds }, index) => {
      const { ids, logprobs } = this.#tokens[index]!;
      if (ids.length === 0) return [];
      const choice: TrajectoryChoice = {
        index,
        finish_reason: finish,
        message: { role: 'assistant', content: text },
        logprobs: { content: [...logprobs] },
        token_ids: [...ids],
        prompt_token_ids: promptIds,
      };
      return [{ messages: [], tools: null, choices: [choice] }];
    });
  }
}

type Growing = {
  role: string;
  content: string;
  reasoning: string;
  readonly calls: { id: string; name: string; text: string; isCustom: boolean }[];
  functionCall: { name: string; arguments: string } | null;
  readonly logprobs: { token: string; logprob: number }[];
  readonly ids: number[];
  finish: string | null;
  experts: RoutedExperts | null;
};

/** Joins the chunks of a stream to choices, as far as they came. */
export class ChunkJoiner {
  readonly #choices: Growing[] = [];
  #promptIds: readonly number[] | null = null;

  /** @throws OnpolicyError `UNSUPPORTED` when the service gives no token ids or log-probabilities */
  add(chunk: ChatCompletionChunk): void {
    this.#promptIds = chunk.prompt_token_ids ?? this.#promptIds;
    for (const { index, delta, token_ids, logprobs, finish_reason, routed_experts } of chunk.choices) {
      const choice = this.#choice(index);
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
      for (const { token, logprob } of logprobs?.content ?? []) choice.logprobs.push({ token, logprob });
      for (const id of token_ids ?? []) choice.ids.push(id);
      choice.finish = finish_reason ?? choice.finish;
      choice.experts = routed_experts ?? choice.experts;
      if (!this.#promptIds || (choice.finish !== null && choice.logprobs.length === 0)) throw withoutIds();
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
          prompt_token_ids: this.#promptIds,
          ...(experts ? { routed_experts: experts } : {}),
        },
      ];
    });
  }

  #choice(index: number): Growing {
    this.#choices[index] ??= {
      role: 'assistant',
      content: '',
      reasoning: '',
      calls: [],
      functionCall: null,
      logprobs: [],
      ids: [],
      finish: null,
      experts: null,
    };
    return this.#choices[index]!;
  }
}

function messageOf(
  role: string,
  content: string | null,
  calls: readonly ToolCall[],
  reasoning: string | null,
  functionCall: FunctionCall | null,
): TrajectoryChoice['message'] {
  const isElsewhere = calls.length > 0 || functionCall !== null || Boolean(reasoning);
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
