/** A running completion -> the chunks of the wire, in their order: roles, deltas, usage. */
import { bufferedIterator } from '../common/index.ts';
import { OnpolicyError } from '../errors.ts';
import type {
  ChatCompletionChunk,
  ChunkChoice,
  ChunkDelta,
  PromptLogprobs,
  TextCompletionChunk,
  ToolCallDelta,
  TranscriptionEvent,
  Usage,
} from '../protocol/index.ts';
import type { Choice } from './choice.ts';
import type { Completion } from './completion.ts';
import { type AnswerHeader, droppedOf, expertsOf, finishReason, toUsage, warningsOf } from './response.ts';

/** What a stream reports of its usage. */
export type UsageReport = {
  /** One last chunk with the sums. */
  readonly atEnd: boolean;
  /** Every chunk has the numbers of its choice. */
  readonly inEveryChunk: boolean;
};

/** The parts of one answer. It can be read once; leaving the loop aborts the request. */
export class AnswerStream<Part> implements AsyncIterable<Part> {
  readonly #chunks: AsyncIterator<Part>;
  readonly #stop: () => void;
  /** @internal Parts that say nothing new, for a reader who would take silence for a failure. */
  readonly idleParts: () => readonly Part[];

  constructor(chunks: AsyncIterator<Part>, stop: () => void, idleParts: () => readonly Part[] = () => []) {
    this.#chunks = chunks;
    this.#stop = stop;
    this.idleParts = idleParts;
  }

  /** The parts, in the order of the wire. */
  [Symbol.asyncIterator](): AsyncIterator<Part> {
    return this.#chunks;
  }

  /** Ends the request now. A reader gets an error with code `ABORTED`. */
  abort(): void {
    this.#stop();
  }
}

/** The chunks of one chat completion. */
export class ChatCompletionStream extends AnswerStream<ChatCompletionChunk> {}

/** The chunks of one text completion. */
export class TextCompletionStream extends AnswerStream<TextCompletionChunk> {}

/** The events of one transcript. */
export class TranscriptionStream extends AnswerStream<TranscriptionEvent> {}

/** A chunk that may have the log-probabilities of the prompt: those of text completions do, the first one of the first choice. */
export type ScoredChunk = ChatCompletionChunk & {
  readonly prompt_logprobs?: readonly (PromptLogprobs | null)[];
};

/** Milliseconds that the first chunk waits to tell what the prefix cache saved. It comes before the prompt is read, which may take minutes. */
const OPENING_MS = 500;

/** The chunks of a completion. Leaving them stops it. */
export function toChunks(
  header: AnswerHeader,
  completion: Completion,
  usage: UsageReport,
): AsyncIterator<ChatCompletionChunk> {
  let hasBegun = false;
  let hasEnded = false;
  let areScoresTaken = false;
  /** The prompt is scored when the first choice has a token. */
  const takeScores = (choice: Choice): Pick<ScoredChunk, 'prompt_logprobs'> => {
    if (areScoresTaken || choice.index !== 0) return {};
    areScoresTaken = true;
    const prompt_logprobs = completion.promptLogprobs();
    return prompt_logprobs ? { prompt_logprobs } : {};
  };
  return bufferedIterator({
    next: async () => {
      if (!hasBegun) {
        hasBegun = true;
        await completion.begun(OPENING_MS);
        if (!completion.error) return openingChunks(header, completion, usage);
      }
      const changed = await completion.changes();
      if (changed === null) {
        if (hasEnded || !usage.atEnd) return null;
        hasEnded = true;
        return [toChunk(header, [], { usage: toUsage(header, completion) })];
      }
      const chunks: ChatCompletionChunk[] = [];
      for (const choice of changed) {
        const counts = counted(header, usage, choice.tokenIds.length);
        const scores = takeScores(choice);
        for (const [i, delta] of deltaChoices(header, choice).entries())
          chunks.push(toChunk(header, [delta], i === 0 ? { ...counts, ...scores } : counts));
      }
      return chunks;
    },
    leave: () => completion.stop(new OnpolicyError('ABORTED', 'the stream was left')),
  });
}

function toChunk(
  { id, created, model }: AnswerHeader,
  choices: ChunkChoice[],
  more: Partial<ScoredChunk>,
): ChatCompletionChunk {
  return { id, object: 'chat.completion.chunk', created, model, choices, ...more };
}

/** Of every choice its role, then what `echo` puts before its text. */
function openingChunks(
  header: AnswerHeader,
  { choices, cachedTokens }: Completion,
  report: UsageReport,
): ChatCompletionChunk[] {
  const { usage } = counted(header, report, 0);
  const none = usage ? { usage: { ...usage, prompt_tokens_details: { cached_tokens: cachedTokens } } } : {};
  const chunks = choices.map(({ index }) =>
    toChunk(header, [openingChoice(index, { role: header.role, content: '' })], {
      ...none,
      prompt_token_ids: header.returnTokenIds ? Array.from(header.promptIds) : null,
      system_fingerprint: header.systemFingerprint,
      seed: header.drawnSeed,
      ...(index === 0 ? warningsOf(header) : {}),
    }),
  );
  if (header.echo !== '')
    for (const { index } of choices)
      chunks.push(toChunk(header, [openingChoice(index, { content: header.echo })], none));
  return chunks;
}

function counted(
  { promptTokens: prompt_tokens }: AnswerHeader,
  { inEveryChunk }: UsageReport,
  completion_tokens: number,
): { usage?: Usage } {
  if (!inEveryChunk) return {};
  return { usage: { prompt_tokens, total_tokens: prompt_tokens + completion_tokens, completion_tokens } };
}

function openingChoice(index: number, delta: ChunkDelta): ChunkChoice {
  return { index, delta: { ...delta, reasoning_content: null }, logprobs: null, finish_reason: null };
}

/**
 * What is new of a choice; nothing when all there is of its text is still being read.
 * An end after new parts of calls has a delta of its own, as at OpenAI: their client sees a call end at the end
 * only if an earlier chunk began it.
 */
function deltaChoices(header: AnswerHeader, choice: Choice): ChunkChoice[] {
  const { message, tokenIds, logprobs, finish } = choice.takeDelta();
  const { content, reasoning, toolCalls } = message;
  const isEmpty = content === '' && reasoning === '' && toolCalls.length === 0;
  const isHidden = choice.message.isParsed && isEmpty;
  if (isHidden && !finish && !header.returnTokenIds && !header.wantsLogprobs) return [];
  const delta = {
    index: choice.index,
    delta: {
      ...(choice.message.isParsed && content === '' ? {} : { content }),
      ...(reasoning === '' ? {} : { reasoning }),
      reasoning_content: reasoning === '' ? null : reasoning,
      ...callDeltas(header, toolCalls),
    },
    logprobs: header.wantsLogprobs ? { content: [...logprobs], refusal: null } : null,
    finish_reason: null,
    token_ids: header.returnTokenIds ? [...tokenIds] : null,
  };
  if (!finish) return [delta];
  const end = {
    finish_reason: finishReason(header, choice),
    stop_reason: finish.stopReason,
    ...expertsOf(choice),
    ...droppedOf(header, choice),
  };
  if (toolCalls.length === 0) return [{ ...delta, ...end }];
  const nothing = {
    delta: { reasoning_content: null },
    logprobs: header.wantsLogprobs ? { content: [], refusal: null } : null,
    token_ids: header.returnTokenIds ? [] : null,
  };
  return [delta, { ...delta, ...nothing, ...end }];
}

/** New parts of calls in the form of the request. */
function callDeltas(
  { usesFunctions }: AnswerHeader,
  calls: ToolCallDelta[],
): Pick<ChunkDelta, 'tool_calls' | 'function_call'> {
  if (calls.length === 0) return {};
  if (!usesFunctions) return { tool_calls: calls };
  const { name, arguments: text = '' } = calls[0]!.function ?? {}; // one call, whose new parts are one delta
  return { function_call: { ...(name === undefined ? {} : { name }), arguments: text } };
}
