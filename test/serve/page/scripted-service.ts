/** Lists of chunks -> a service that answers each request with the next list, and keeps what it was asked. */
import { OnpolicyError } from '../../../src/errors.ts';
import type {
  ChatCompletionChunk,
  ChatCompletionRequest,
  ChunkDelta,
  FinishReason,
} from '../../../src/protocol/index.ts';
import { ChatCompletionStream } from '../../../src/protocol/service/index.ts';
import type { Servable } from '../../../src/serve/http/index.ts';

/**
 * A part of an answer: a delta, the reason of its end, an error, tokens of the prompt that are read, tokens a second, or a wait until the
 * test goes on or the request is aborted.
 */
export type Part =
  | ChunkDelta
  | { readonly read: number; readonly of: number }
  | { readonly perSecond: number }
  | { readonly finish: FinishReason }
  | { readonly error: string }
  | 'wait';

/** A service for tests of the page. */
export type Scripted = {
  readonly service: Servable;
  /** Bodies of the requests so far. */
  readonly requests: ChatCompletionRequest[];
  /** Sets the answers of the next requests. */
  readonly script: (...answers: readonly (readonly Part[])[]) => void;
  /** Ends the wait of the running answer. */
  readonly goOn: () => void;
  readonly aborted: () => number;
};

export function createScripted(capabilities: readonly string[] = ['completion', 'vision']): Scripted {
  const requests: ChatCompletionRequest[] = [];
  let answers: (readonly Part[])[] = [];
  let goOn = (): void => {};
  let aborted = 0;
  async function* chunks(parts: readonly Part[], signal: AbortSignal): AsyncGenerator<ChatCompletionChunk> {
    const head = { id: 'x', object: 'chat.completion.chunk', created: 0, model: 'scripted' } as const;
    let count = 0;
    for (const part of parts) {
      if (part === 'wait') {
        await new Promise<void>((resolve) => {
          goOn = resolve;
          signal.addEventListener('abort', () => resolve(), { once: true });
        });
        if (!signal.aborted) continue;
        aborted += 1;
        throw new OnpolicyError('ABORTED', 'the client went away');
      }
      if ('error' in part) throw new OnpolicyError('BACKEND_FAILED', part.error);
      if ('read' in part || 'perSecond' in part) {
        const report =
          'read' in part
            ? { prompt_progress: { total: part.of, cache: 0, processed: part.read, time_ms: 1 } }
            : { timings: { predicted_per_second: part.perSecond } };
        yield { ...head, choices: [], ...report } as ChatCompletionChunk;
        continue;
      }
      count += 1;
      const [delta, finish_reason] = 'finish' in part ? [{}, part.finish] : [part, null];
      yield { ...head, choices: [{ index: 0, delta, logprobs: null, finish_reason }] };
    }
    const usage = {
      prompt_tokens: 1234,
      completion_tokens: count,
      total_tokens: 1234 + count,
      prompt_tokens_details: { cached_tokens: 1000 },
    };
    yield { ...head, choices: [], usage } as ChatCompletionChunk;
  }
  const service = {
    createCompletion: async (request: ChatCompletionRequest, { signal }: { signal: AbortSignal }) => {
      requests.push(structuredClone(request));
      return new ChatCompletionStream(chunks(answers.shift() ?? [{ finish: 'stop' }], signal), () => {});
    },
    servedModels: () => ['scripted', 'models/other.gguf'],
    hasModel: () => true,
    modelCard: async () => ({ contextSize: 4096, capabilities, metadata: {} }),
    close: async () => {},
    [Symbol.asyncDispose]: async () => {},
  } as object as Servable;
  return {
    service,
    requests,
    script: (...given) => {
      answers = [...given];
    },
    goOn: () => goOn(),
    aborted: () => aborted,
  };
}
