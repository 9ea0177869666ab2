/** The chunks of an answer -> its text on the output, its reasoning and what cut it on the error stream. */
import type { Writable } from 'node:stream';
import type { WriteStream } from 'node:tty';
import type { ChatCompletionRequest, FinishReason, Service } from '../../index.ts';
import { PromptBar } from './prompt-bar.ts';
import { isWatched, type Terminal } from './terminal.ts';
import { Wrapper } from './wrap.ts';

const DIM = '\x1b[2m';
const PLAIN = '\x1b[0m';

/**
 * Streams an answer to the terminal; returns the whole answer, or the part that was received before `signal` fired. Reasoning is written to
 * the error stream as it comes, dim in a terminal, so that the output has the answer alone.
 */
export async function streamAnswer(
  service: Pick<Service, 'createCompletion'>,
  request: ChatCompletionRequest,
  terminal: Terminal,
  signal?: AbortSignal,
): Promise<string> {
  const answer = new AnswerPrinter(terminal);
  const bar = new PromptBar(terminal.errors);
  let finish: FinishReason | null = null;
  try {
    const asked = { ...request, ...bar.fields, stream: true } as const;
    const stream = await service.createCompletion(asked, signal ? { signal } : {});
    for await (const { choices, prompt_progress: progress } of stream) {
      if (progress) bar.show(progress);
      else if (choices[0]?.delta.role === undefined) bar.clear();
      answer.addReasoning(choices[0]?.delta.reasoning ?? '');
      answer.addText(choices[0]?.delta.content ?? '');
      finish = choices[0]?.finish_reason ?? finish;
    }
  } catch (error) {
    if (!signal?.aborted) throw error;
  } finally {
    bar.clear();
    answer.end();
  }
  if (finish === 'length') terminal.errors.write(`${cutNote(answer, request.max_completion_tokens)}\n`);
  return answer.text;
}

/** Says where an answer was cut, and what makes it longer. */
function cutNote({ text }: AnswerPrinter, maxTokens: number | null | undefined): string {
  const what = text === '' ? 'the answer ended while the model was thinking' : 'the answer was cut';
  return maxTokens == null
    ? `${what}: prompt and answer fill the context of the model`
    : `${what}: --max-tokens is ${maxTokens}; a larger one lets it go on`;
}

/** Writes an answer as it comes. */
class AnswerPrinter {
  text = '';
  readonly #output: Writable;
  readonly #errors: Writable;
  readonly #wrapper: Wrapper;
  readonly #thoughts: Wrapper;
  #isThinking = false;

  constructor({ output, errors }: Terminal) {
    this.#output = output;
    this.#errors = errors;
    this.#wrapper = new Wrapper(() => widthOf(output));
    this.#thoughts = new Wrapper(() => widthOf(errors));
  }

  addReasoning(piece: string): void {
    if (piece === '') return;
    if (!this.#isThinking) this.#errors.write(`${isWatched(this.#errors) ? DIM : ''}thinking: `);
    this.#isThinking = true;
    this.#errors.write(this.#thoughts.add(piece));
  }

  addText(piece: string): void {
    if (piece === '') return;
    this.#endReasoning();
    this.text += piece;
    this.#output.write(this.#wrapper.add(piece));
  }

  end(): void {
    this.#endReasoning();
    this.#output.write(`${this.#wrapper.flush()}\n`);
  }

  /** Writes an empty line after the reasoning, in a terminal, which shows both streams. */
  #endReasoning(): void {
    if (!this.#isThinking) return;
    this.#isThinking = false;
    this.#errors.write(`${this.#thoughts.flush()}${isWatched(this.#errors) ? `${PLAIN}\n\n` : '\n'}`);
  }
}

function widthOf(stream: Writable): number {
  return isWatched(stream)
    ? ((stream as WriteStream).columns ?? Number.POSITIVE_INFINITY)
    : Number.POSITIVE_INFINITY;
}
