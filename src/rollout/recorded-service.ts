/** A service -> the same service with one model, which reports each answer with ids and log-probabilities. */
import { ChatCompletionStream } from '../answer/index.ts';
import { OnpolicyError } from '../errors.ts';
import {
  type AfterDoor,
  afterDoor,
  type ChatCompletion,
  type ChatCompletionChunk,
  type ChatCompletionRequest,
  type Checked,
  givenTools,
  splitAtDoor,
} from '../protocol/index.ts';
import type { CallOptions, Completions } from '../service.ts';
import { ChunkJoiner, choicesOf, type Exchange } from './exchange.ts';

/** One request's place in the recording. */
export type Place = {
  /** For a request that has none. */
  readonly seed: number | null;
  /** Takes what reads the choices of the answer, as far as they came. */
  readonly report: (choices: () => Exchange['choices']) => void;
};

/** What is told about requests. */
export type RecordedServiceOptions = {
  /** The model of all requests, whatever they name. */
  readonly model: string;
  /** Called when a request begins; throws when the recording has ended. */
  readonly begin: (request: Pick<Exchange, 'messages' | 'tools'>) => Place;
  /** Ends running requests. */
  readonly signal: AbortSignal;
};

type Answer = ChatCompletion | ChatCompletionStream;
type Ask = (request: ChatCompletionRequest, options: CallOptions) => Promise<Answer>;

/** Clients get the fields that they asked for; the recording gets ids and log-probabilities. */
export class RecordedService implements Completions {
  readonly #service: Completions;
  readonly #options: RecordedServiceOptions;
  readonly createCompletion = ((request, options) =>
    this.#record(request, options, (recorded, call) =>
      this.#service.createCompletion(recorded, call),
    )) as Completions['createCompletion'];

  constructor(service: Completions, options: RecordedServiceOptions) {
    this.#service = service;
    this.#options = options;
    const after: AfterDoor<unknown, Completions['createCompletion']> = (request, callOptions) =>
      this.#record(request, callOptions, (recorded, call) =>
        afterDoor(service.createCompletion).call(service, recorded as Checked<ChatCompletionRequest>, call),
      );
    splitAtDoor(this.createCompletion, after);
  }

  /** Leaves the service open: others use it too. */
  async close(): Promise<void> {}

  async [Symbol.asyncDispose](): Promise<void> {}

  async #record(
    request: ChatCompletionRequest,
    { signal }: CallOptions = {},
    ask: Ask,
  ): Promise<ChatCompletion | ChatCompletionStream> {
    const { model } = this.#options;
    if (request?.use_beam_search)
      throw new OnpolicyError('UNSUPPORTED', 'use_beam_search: beams are not sampled, so they cannot train', {
        param: 'use_beam_search',
      });
    const { seed, report } = this.#options.begin({
      messages: [...(Array.isArray(request?.messages) ? request.messages : [])],
      tools: request ? givenTools(request) : null,
    });
    const recorded = {
      ...request,
      model,
      logprobs: true,
      return_token_ids: true,
      ...(seed === null ? {} : { seed: request.seed ?? seed }),
    };
    const ends = signal ? AbortSignal.any([signal, this.#options.signal]) : this.#options.signal;
    const answer = await ask(recorded, { signal: ends });
    const asked = { logprobs: request.logprobs === true, ids: request.return_token_ids === true };
    if (Symbol.asyncIterator in answer) return recordedStream(answer, asked, report);
    const choices = choicesOf(answer);
    report(() => choices);
    return {
      ...answer,
      prompt_token_ids: asked.ids ? answer.prompt_token_ids : null,
      choices: answer.choices.map((choice) => withAsked(choice, asked)),
    };
  }
}

type Asked = { readonly logprobs: boolean; readonly ids: boolean };

/** Joins the chunks that the client reads. */
function recordedStream(
  stream: ChatCompletionStream,
  asked: Asked,
  report: Place['report'],
): ChatCompletionStream {
  const joiner = new ChunkJoiner();
  report(() => joiner.choices());
  const source = stream[Symbol.asyncIterator]();
  const chunks: AsyncIterator<ChatCompletionChunk> = {
    async next() {
      const read = await source.next();
      if (read.done) return read;
      joiner.add(read.value);
      const { prompt_token_ids, choices, ...rest } = read.value;
      const ids =
        prompt_token_ids === undefined ? {} : { prompt_token_ids: asked.ids ? prompt_token_ids : null };
      return {
        done: false,
        value: { ...rest, ...ids, choices: choices.map((choice) => withAsked(choice, asked)) },
      };
    },
    async return(value) {
      return (await source.return?.(value)) ?? { done: true, value };
    },
  };
  return new ChatCompletionStream(chunks, () => stream.abort());
}

function withAsked<Choice extends { logprobs: unknown; token_ids?: unknown }>(
  choice: Choice,
  asked: Asked,
): Choice {
  return {
    ...choice,
    ...(asked.logprobs ? {} : { logprobs: null }),
    ...(asked.ids ? {} : { token_ids: null }),
  };
}
