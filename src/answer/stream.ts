/** A running completion -> the chunks of the wire, in their order: roles, deltas, usage. */
import { bufferedIterator } from '../common/index.ts';
import { OnpolicyError } from '../errors.ts';
import type {
  ChatCompletionChunk,
  ChunkChoice,
  ChunkDelta,
  PromptLogprobs,
  ToolCallDelta,
  Usage,
} from '../protocol/index.ts';
import type { Choice } from './choice.ts';
import type { Completion } from './completion.ts';
import { type AnswerHeader, finishReason, promptTextOf, toUsage, warningsOf } from './response.ts';

/** Options for the usage in a stream. */
export type UsageReport = {
  /** True to send a last chunk with the sums. */
  readonly atEnd: boolean;
  /** True to send the counts of the choice in every chunk. */
  readonly inEveryChunk: boolean;
};

/** A chunk that may carry the log-probabilities of the prompt: the first chunk of the first choice of a text completion does. */
export type ScoredChunk = ChatCompletionChunk & {
  readonly prompt_logprobs?: readonly (PromptLogprobs | null)[];
};

/**
 * Maximum time in milliseconds that the first chunk waits for the number of cached tokens. It is sent before the prompt is computed, which
 * may take minutes.
 */
const OPENING_MS = 500;

/** Returns the chunks of a completion. Leaving the iterator stops the completion. */
export function toChunks(
  header: AnswerHeader,
  completion: Completion,
  usage: UsageReport,
): AsyncIterator<ChatCompletionChunk> {
  let hasBegun = false;
  let hasEnded = false;
  let areScoresTaken = false;
  /** Returns the prompt's log-probabilities with the first token of the first choice, which is when they are known; else null. */
  const takeScores = (choice: Choice): Pick<ScoredChunk, 'prompt_logprobs'> | null => {
    if (areScoresTaken || choice.index !== 0) return null;
    areScoresTaken = true;
    const { prompt_logprobs } = completion.fields();
    return prompt_logprobs ? { prompt_logprobs } : null;
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
        const { returnTimings } = header;
        return [
          toChunk(header, [], {
            usage: toUsage(header, completion),
            ...(returnTimings ? completion.timings() : {}),
          }),
        ];
      }
      const progress = completion.takeProgress();
      const chunks = progress ? [toChunk(header, [], { prompt_progress: progress })] : [];
      const timings = timed(header, completion);
      for (const choice of changed) {
        const counts = counted(header, usage, choice.tokenIds.length);
        let scores = takeScores(choice);
        for (const delta of deltaChoices(header, completion, choice)) {
          chunks.push(Object.assign(toChunk(header, [delta]), counts, timings, scores));
          scores = null;
        }
      }
      if (completion.isEnded && !usage.atEnd && header.returnTimings && chunks.length > 0)
        Object.assign(chunks.at(-1)!, completion.timings());
      return chunks;
    },
    leave: () => completion.stop(new OnpolicyError('ABORTED', 'the stream was left')),
  });
}

function toChunk(
  { id, created, model }: AnswerHeader,
  choices: ChunkChoice[],
  more: Partial<ScoredChunk> | null = null,
): ChatCompletionChunk {
  const chunk: ChatCompletionChunk = { id, object: 'chat.completion.chunk', created, model, choices };
  return more === null ? chunk : Object.assign(chunk, more);
}

/** Returns a chunk with the role of each choice, then one with the text of `echo`. */
function openingChunks(
  header: AnswerHeader,
  { choices, cachedTokens }: Completion,
  report: UsageReport,
): ChatCompletionChunk[] {
  const usage = counted(header, report, 0)?.usage;
  const none = usage ? { usage: { ...usage, prompt_tokens_details: { cached_tokens: cachedTokens } } } : {};
  const chunks = choices.map(({ index }) =>
    toChunk(header, [openingChoice(index, { role: header.role, content: '' })], {
      ...none,
      prompt_token_ids: header.returnTokenIds ? Array.from(header.promptIds) : null,
      system_fingerprint: header.systemFingerprint,
      seed: header.drawnSeed,
      ...(index === 0 ? { ...promptTextOf(header), ...warningsOf(header) } : {}),
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
): { usage: Usage } | null {
  if (!inEveryChunk) return null;
  return { usage: { prompt_tokens, total_tokens: prompt_tokens + completion_tokens, completion_tokens } };
}

/** Returns the timings so far if every chunk has them, else null. */
function timed(header: AnswerHeader, completion: Completion): Pick<ChatCompletionChunk, 'timings'> | null {
  return header.timesChunks ? { timings: completion.timingsSoFar() } : null;
}

function openingChoice(index: number, delta: ChunkDelta): ChunkChoice {
  return { index, delta: { ...delta, reasoning_content: null }, logprobs: null, finish_reason: null };
}

/**
 * Returns the new parts of a choice; empty while all of its new text is still being parsed. If an end comes with new parts of calls, the
 * end is a separate delta, as at OpenAI: their client notices the end of a call only if an earlier chunk began it.
 */
function deltaChoices(header: AnswerHeader, completion: Completion, choice: Choice): ChunkChoice[] {
  const { message, tokenIds, logprobs, finish } = choice.takeDelta();
  const { content, reasoning, toolCalls } = message;
  const isEmpty = content === '' && reasoning === '' && toolCalls.length === 0;
  const isHidden = choice.message.isParsed && isEmpty;
  if (isHidden && !finish && !header.returnTokenIds && !header.wantsLogprobs) return [];
  const parts: ChunkDelta = choice.message.isParsed && content === '' ? {} : { content };
  if (reasoning !== '') parts.reasoning = reasoning;
  parts.reasoning_content = reasoning === '' ? null : reasoning;
  if (toolCalls.length > 0) Object.assign(parts, callDeltas(header, toolCalls));
  const delta = {
    index: choice.index,
    delta: parts,
    logprobs: header.wantsLogprobs ? { content: [...logprobs], refusal: null } : null,
    finish_reason: null,
    token_ids: header.returnTokenIds ? [...tokenIds] : null,
  };
  if (!finish) return [delta];
  const end = {
    finish_reason: finishReason(header, choice),
    stop_reason: finish.stopReason,
    ...completion.reportOf(choice),
  };
  if (toolCalls.length === 0) return [{ ...delta, ...end }];
  const nothing = {
    delta: { reasoning_content: null },
    logprobs: header.wantsLogprobs ? { content: [], refusal: null } : null,
    token_ids: header.returnTokenIds ? [] : null,
  };
  return [delta, { ...delta, ...nothing, ...end }];
}

/** Returns new parts of calls in the form of the request. */
function callDeltas(
  { usesFunctions }: AnswerHeader,
  calls: ToolCallDelta[],
): Pick<ChunkDelta, 'tool_calls' | 'function_call'> {
  if (!usesFunctions) return { tool_calls: calls };
  const { name, arguments: text = '' } = calls[0]!.function ?? {}; // there is one call, and its new parts are one delta
  return { function_call: { ...(name === undefined ? {} : { name }), arguments: text } };
}
