/** Chunks of a stream -> the turn that they add up to, with the times at which they came. */
import type { ChatCompletionChunk, ChunkDelta, PromptProgress } from '../../protocol/index.ts';
import type { AssistantTurn } from './turns.ts';

/** Adds the chunks of one answer to its turn. */
export class AnswerReader {
  readonly #turn: AssistantTurn;
  readonly #startMs = performance.now();
  /** The progress of the prompt. Null before the first report. */
  progress: PromptProgress | null = null;

  constructor(turn: AssistantTurn) {
    this.#turn = turn;
    turn.timings = { firstMs: null, totalMs: 0, promptTokens: null, cachedTokens: null, tokens: null };
  }

  /** Milliseconds since the request. */
  get ms(): number {
    return performance.now() - this.#startMs;
  }

  add({ model, choices, usage, timings: measured, prompt_progress: progress }: ChatCompletionChunk): void {
    const turn = this.#turn;
    turn.model = model;
    const timings = turn.timings!;
    if (usage) {
      timings.promptTokens = usage.prompt_tokens;
      timings.cachedTokens = usage.prompt_tokens_details?.cached_tokens ?? null;
      timings.tokens = usage.completion_tokens;
    }
    if (measured) timings.tokensPerSecond = measured.predicted_per_second;
    this.progress = progress ?? this.progress;
    const [choice] = choices;
    if (!choice) return;
    if (isText(choice.delta)) timings.firstMs ??= this.ms;
    this.#addDelta(choice.delta);
    turn.finish = choice.finish_reason ?? turn.finish;
  }

  /** Ends the turn, whether all of it came or not. */
  end(): void {
    this.#endReasoning();
    this.#turn.timings!.totalMs = this.ms;
  }

  #addDelta({ content, reasoning, tool_calls: calls = [] }: ChunkDelta): void {
    const turn = this.#turn;
    turn.reasoning += reasoning ?? '';
    if (content || calls.length > 0) this.#endReasoning();
    turn.text += content ?? '';
    for (const { index, id, function: called, custom } of calls) {
      turn.calls[index] ??= { id: id ?? '', name: '', arguments: '', result: null };
      const call = turn.calls[index];
      call.name += called?.name ?? custom?.name ?? '';
      call.arguments += called?.arguments ?? custom?.input ?? '';
    }
  }

  #endReasoning(): void {
    const { reasoning, timings } = this.#turn;
    if (reasoning !== '') this.#turn.reasoningMs ??= this.ms - timings!.firstMs!;
  }
}

function isText({ content, reasoning, tool_calls: calls }: ChunkDelta): boolean {
  return Boolean(content || reasoning || calls?.length);
}
