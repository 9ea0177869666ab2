/** A running completion -> the chunks of the wire, in their order: roles, deltas, usage. */
import type { Choice } from './choice.ts';
import type { Completion } from './completion.ts';
import type { ChatCompletionChunk, ChunkChoice, Usage } from './protocol/index.ts';
import { type AnswerHeader, finishReason, toUsage } from './response.ts';

/** What a stream reports of its usage. */
export type UsageReport = {
  /** One last chunk with the sums. */
  readonly atEnd: boolean;
  /** Every chunk with the numbers of its own choice. */
  readonly inEveryChunk: boolean;
};

/** The chunks of one answer. It can be read once; leaving the loop aborts the request. */
export class ChatCompletionStream implements AsyncIterable<ChatCompletionChunk> {
  readonly #chunks: AsyncGenerator<ChatCompletionChunk>;
  readonly #stop: () => void;

  constructor(chunks: AsyncGenerator<ChatCompletionChunk>, stop: () => void) {
    this.#chunks = chunks;
    this.#stop = stop;
  }

  /** The chunks, in the order of the wire. */
  [Symbol.asyncIterator](): AsyncIterator<ChatCompletionChunk> {
    return this.#chunks;
  }

  /** Ends the request now. A reader gets an error with code `ABORTED`. */
  abort(): void {
    this.#stop();
  }
}

/** Yields the chunks of a completion. */
export async function* toChunks(
  header: AnswerHeader,
  completion: Completion,
  usage: UsageReport,
): AsyncGenerator<ChatCompletionChunk> {
  const chunk = (choices: ChunkChoice[], more: Partial<ChatCompletionChunk>): ChatCompletionChunk => ({
    id: header.id,
    object: 'chat.completion.chunk',
    created: header.created,
    model: header.model,
    choices,
    ...more,
  });
  const counted = (choice: Choice | null): { usage?: Usage } =>
    usage.inEveryChunk ? { usage: choiceUsage(header, choice) } : {};
  let isFirst = true;
  for await (const choice of completion.changes()) {
    if (isFirst) {
      isFirst = false;
      const prompt_token_ids = header.returnTokenIds ? Array.from(header.promptIds) : null;
      for (const { index } of completion.choices)
        yield chunk([roleChoice(header, index)], {
          ...counted(null),
          prompt_token_ids,
          system_fingerprint: header.systemFingerprint,
          seed: header.drawnSeed,
        });
      if (header.echo !== '')
        for (const { index } of completion.choices) yield chunk([echoChoice(header, index)], counted(null));
    }
    const delta = deltaChoice(header, choice);
    if (delta) yield chunk([delta], counted(choice));
  }
  if (usage.atEnd) yield chunk([], { usage: toUsage(header, completion) });
}

function roleChoice(header: AnswerHeader, index: number): ChunkChoice {
  return {
    index,
    delta: { role: header.role, content: '', reasoning_content: null },
    logprobs: null,
    finish_reason: null,
  };
}

function echoChoice(header: AnswerHeader, index: number): ChunkChoice {
  return {
    index,
    delta: { content: header.echo, reasoning_content: null },
    logprobs: null,
    finish_reason: null,
  };
}

/** The next chunk of a choice; null when all there is of its text is still being read. */
function deltaChoice(header: AnswerHeader, choice: Choice): ChunkChoice | null {
  const { message, tokenIds, logprobs, finish } = choice.takeDelta();
  const { content, reasoning, toolCalls } = message;
  const isEmpty = content === '' && reasoning === '' && toolCalls.length === 0;
  const isHidden = choice.message.isParsed && isEmpty;
  if (isHidden && !finish && !header.returnTokenIds && !header.wantsLogprobs) return null;
  return {
    index: choice.index,
    delta: {
      ...(choice.message.isParsed && content === '' ? {} : { content }),
      ...(reasoning === '' ? {} : { reasoning }),
      reasoning_content: reasoning === '' ? null : reasoning,
      ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}),
    },
    logprobs: header.wantsLogprobs ? { content: [...logprobs], refusal: null } : null,
    finish_reason: finish && finishReason(header, choice),
    ...(finish ? { stop_reason: finish.stopReason } : {}),
    token_ids: header.returnTokenIds ? [...tokenIds] : null,
  };
}

function choiceUsage(header: AnswerHeader, choice: Choice | null): Usage {
  const prompt_tokens = header.promptIds.length;
  const completion_tokens = choice?.tokenIds.length ?? 0;
  return { prompt_tokens, total_tokens: prompt_tokens + completion_tokens, completion_tokens };
}
