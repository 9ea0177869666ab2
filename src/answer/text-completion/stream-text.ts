/** The chunks of a chat completion that continues one prompt -> those of a text completion. */

import type { Tokenizer } from '../../engine/tokenizer/index.ts';
import type {
  ChatCompletionChunk,
  ChunkChoice,
  GivenPrompt,
  TextCompletionChunk,
  TextCompletionChunkChoice,
  ValidTextCompletionRequest,
} from '../../protocol/index.ts';
import type { ChatCompletionStream } from '../../protocol/service/index.ts';
import type { TokenPrompt } from '../prompt.ts';
import type { ScoredChunk } from '../stream.ts';
import { TextOffsets } from './logprobs.ts';
import type { MergedStream } from './merge.ts';
import { TextParts } from './text-parts.ts';

/** Inputs for translating the stream of one prompt. */
export type PromptStream = {
  readonly request: ValidTextCompletionRequest;
  readonly tokenizer: Tokenizer;
  readonly given: GivenPrompt;
  readonly prompt: TokenPrompt;
  /** Index of the first choice in the response. */
  readonly firstIndex: number;
  readonly header: Pick<TextCompletionChunk, 'id' | 'object' | 'created' | 'model'>;
  /** Called with the last chunk, which has the usage, if the request asks for it. */
  readonly onEnd: (last: ChatCompletionChunk) => void;
};

/** The times of a prompt and of its answer. */
export type ReportedTimes = Pick<TextCompletionChunk, 'metrics' | 'timings'>;

/** Returns the times in an answer or a chunk; none if the request does not ask for them. */
export function timesOf({ metrics, timings }: ReportedTimes): ReportedTimes {
  return { ...(metrics ? { metrics } : {}), ...(timings ? { timings } : {}) };
}

/**
 * Translates chunks. If the log-probabilities of the prompt come first (`echo` with `logprobs`), chunks are held back until the prompt is
 * scored.
 */
export function streamText(
  stream: ChatCompletionStream,
  options: PromptStream,
): MergedStream<TextCompletionChunk> {
  const { request, header, firstIndex, onEnd } = options;
  const chunks = stream[Symbol.asyncIterator]();
  const choices = new Map<number, ChoiceText>();
  let held: ScoredChunk[] | null = request.echo && request.logprobs !== null ? [] : null;
  let promptIds: readonly number[] = [];
  let scores: ScoredChunk['prompt_logprobs'] = [];
  let parts: TextParts | null = null; // made when the prompt's tokens and scores are known
  const translate = (chunk: ScoredChunk): TextCompletionChunk => {
    const { usage } = chunk;
    const choice = chunk.choices[0]!;
    let text = choices.get(choice.index);
    if (!text) {
      text = { offsets: new TextOffsets(), previous: -1 };
      choices.set(choice.index, text);
    }
    parts ??= new TextParts(options, promptIds, scores ?? []);
    const more = { ...(usage ? { usage } : {}), ...timesOf(chunk) };
    return { ...header, choices: [toChoice(parts, choice, text, firstIndex)], ...more };
  };
  return {
    async next() {
      const { done, value } = await chunks.next();
      if (done) return null;
      const chunk: ScoredChunk = value;
      promptIds = chunk.prompt_token_ids ?? promptIds;
      const [choice] = chunk.choices;
      if (!choice) {
        const { prompt_progress } = chunk;
        if (prompt_progress) return [{ ...header, choices: [], prompt_progress }];
        onEnd(chunk);
        return [];
      }
      if (choice.delta.role !== undefined) return []; // this chunk has only the role
      if (held && !chunk.prompt_logprobs) {
        held.push(chunk);
        return [];
      }
      const ready = held ? [...held, chunk] : [chunk];
      held = null;
      scores = chunk.prompt_logprobs ?? scores;
      return ready.map(translate);
    },
    close: () => stream.abort(),
  };
}

/** Position in the text of one choice. */
type ChoiceText = { readonly offsets: TextOffsets; previous: number; hasBegun?: boolean };

function toChoice(
  parts: TextParts,
  { index, delta, logprobs, finish_reason, stop_reason, token_ids, context_shift }: ChunkChoice,
  text: ChoiceText,
  firstIndex: number,
): TextCompletionChunkChoice {
  const isFirst = !text.hasBegun;
  text.hasBegun = true;
  const made = parts.of(
    { text: delta.content ?? '', entries: logprobs?.content ?? [], ids: token_ids ?? [] },
    { offsets: text.offsets, previous: text.previous, isFirst },
  );
  text.previous = token_ids?.at(-1) ?? text.previous;
  return {
    index: firstIndex + index,
    text: made.text,
    logprobs: made.logprobs,
    finish_reason: parts.finishOf(finish_reason),
    ...(finish_reason ? { stop_reason: parts.isEmpty ? null : (stop_reason ?? null) } : {}),
    ...(isFirst ? { prompt_token_ids: parts.shownPromptIds } : {}),
    token_ids: made.ids,
    ...(context_shift ? { context_shift } : {}),
  };
}
