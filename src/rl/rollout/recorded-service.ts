/** A service -> the same service with one model, which reports each answer with ids and log-probabilities. Embeddings are not recorded. */

import { errorAt } from '../../errors.ts';
import {
  type ChatCompletion,
  type ChatCompletionChunk,
  type ChatCompletionRequest,
  givenTools,
  type RecorderOptions,
  type TextCompletion,
  type TextCompletionChunk,
  type TextCompletionRequest,
  type TrajectoryChoice,
} from '../../protocol/index.ts';
import {
  type CallArguments,
  type CallOptions,
  type ChatAnswer,
  ChatCompletionStream,
  type Completions,
  type MethodName,
  type TextAnswer,
  TextCompletionStream,
} from '../../protocol/service/index.ts';
import { callChecked, Facade, hasMethod } from '../../serve/index.ts';
import { ChunkJoiner, type Exchange, textChunk, wholeChunk } from './exchange.ts';

/** One request in the recording. */
export type RecordedRequest = {
  /** Seed for a request without one. */
  readonly seed: number | null;
  /** Registers a function that reads the answer as far as it was received. */
  readonly report: (read: () => readonly Exchange[]) => void;
};

/** The methods that a recording has, if its service has them. */
const RECORDED: readonly MethodName[] = ['createCompletion', 'createTextCompletion', 'createEmbeddings'];

/** Options of a recorded service. */
export type RecordedServiceOptions = {
  /** Model of all requests, which overrides the one that they name. */
  readonly model: string;
  /** True if chats always record the experts of their tokens. */
  readonly routedExperts: boolean;
  /** `repetition_detection` of requests that have none. */
  readonly repetitionDetection: RecorderOptions['repetitionDetection'];
  /** Called when a request begins. Throws if the recording has ended. */
  readonly begin: () => RecordedRequest;
  /** Aborts running requests. */
  readonly signal: AbortSignal;
};

/** A service whose clients get the fields that they asked for, while the recording gets ids and log-probabilities. */
export class RecordedService extends Facade {
  readonly #options: RecordedServiceOptions;
  readonly #service: Completions;

  constructor(service: Completions, options: RecordedServiceOptions) {
    super();
    this.#options = options;
    this.#service = service;
  }

  /** Embeddings are passed through without recording and with any model, because nothing is sampled. */
  override has(name: MethodName): boolean {
    return RECORDED.includes(name) && hasMethod(this.#service, name);
  }

  protected ask(name: MethodName, [request, options]: CallArguments): unknown {
    const call = options as CallOptions;
    if (name === 'createCompletion') return this.#record(request as ChatCompletionRequest, call);
    if (name === 'createTextCompletion') return this.#recordText(request as TextCompletionRequest, call);
    return callChecked(this.#service, name, request, this.#untilEnd(call));
  }

  protected requireOpen(): void {} // `begin` refuses requests once the recording has ended

  /** Leaves the service open: others use it too. */
  async close(): Promise<void> {}

  /** Records each choice as a separate history: the ids of a prompt and its continuation. */
  async #recordText(request: TextCompletionRequest, options: CallOptions): Promise<TextAnswer> {
    const { place, call, more } = this.#begin(request, options);
    const sent = { ...request, ...more, logprobs: request.logprobs ?? 0 };
    const answer = (await callChecked(this.#service, 'createTextCompletion', sent, call)) as TextAnswer;
    const asked = { ...askedOf(request), logprobs: request.logprobs != null };
    const joiner = new ChunkJoiner();
    const params = samplingOf(request);
    const read = () =>
      joiner.choices().map((choice) => ({ messages: [], tools: null, choices: [{ ...choice, ...params }] }));
    const take = <Part extends TextCompletion | TextCompletionChunk>(part: Part): Part => {
      joiner.add(textChunk(part.choices));
      const choices = part.choices.map((choice) => ({
        ...withAsked(choice, asked),
        ...(asked.ids ? {} : { prompt_token_ids: null }),
      }));
      return { ...part, choices };
    };
    if (!(Symbol.asyncIterator in answer)) return reported(take(answer), place, read);
    return reported(new TextCompletionStream(mapped(answer, take), () => answer.abort()), place, read);
  }

  async #record(request: ChatCompletionRequest, options: CallOptions): Promise<ChatAnswer> {
    const { place, call, more } = this.#begin(request, options);
    const told = { messages: [...request.messages], tools: givenTools(request) };
    const experts = this.#options.routedExperts ? { return_routed_experts: true } : {};
    const sent = { ...request, ...more, ...experts, logprobs: true };
    const answer = (await callChecked(this.#service, 'createCompletion', sent, call)) as ChatAnswer;
    const asked = { ...askedOf(request), logprobs: request.logprobs === true };
    const joiner = new ChunkJoiner();
    const params = samplingOf(request);
    const read = () => [{ ...told, choices: joiner.choices().map((choice) => ({ ...choice, ...params })) }];
    const show = <Part extends ChatCompletion | ChatCompletionChunk>(part: Part): Part => ({
      ...part,
      ...(asked.ids || part.prompt_token_ids === undefined ? {} : { prompt_token_ids: null }),
      choices: part.choices.map((choice) => withAsked(choice, asked)),
    });
    if (!(Symbol.asyncIterator in answer)) {
      joiner.add(wholeChunk(answer));
      return reported(show(answer), place, read);
    }
    const take = (chunk: ChatCompletionChunk): ChatCompletionChunk => {
      joiner.add(chunk);
      return show(chunk);
    };
    const stream = new ChatCompletionStream(mapped(answer, take), () => answer.abort()).endReasoningWith(() =>
      answer.endReasoning(),
    );
    return reported(stream, place, read);
  }

  /** Begins a request. Returns its place, the options of its call, which ends with the recording, and additional fields for it. */
  #begin(
    request: Pick<ChatCompletionRequest, 'seed' | 'use_beam_search' | 'repetition_detection'>,
    options: CallOptions,
  ) {
    if (request.use_beam_search)
      throw errorAt('use_beam_search', 'UNSUPPORTED', 'beams are not sampled, so they cannot be trained on');
    const place = this.#options.begin();
    const seed = request.seed ?? place.seed;
    const { model, repetitionDetection } = this.#options;
    const repetition_detection = request.repetition_detection ?? repetitionDetection;
    const more = {
      model,
      return_token_ids: true as const,
      ...(seed === null ? {} : { seed }),
      ...(repetition_detection ? { repetition_detection } : {}),
    };
    return { place, call: this.#untilEnd(options), more };
  }

  /** Returns options of a call that ends with the recording. */
  #untilEnd({ signal }: CallOptions): CallOptions {
    const end = this.#options.signal;
    return { signal: signal ? AbortSignal.any([signal, end]) : end };
  }
}

/** Fields that the client asked for. Others are only for the recording. */
type Asked = { readonly logprobs: boolean; readonly ids: boolean; readonly experts: boolean };

function askedOf(
  request: Pick<ChatCompletionRequest, 'return_token_ids' | 'return_routed_experts'>,
): Omit<Asked, 'logprobs'> {
  return { ids: request.return_token_ids === true, experts: request.return_routed_experts === true };
}

/** Returns the sampling parameters of a request, to store with its choices. */
function samplingOf({
  temperature,
  top_p,
  top_k,
  min_p,
}: Pick<ChatCompletionRequest, 'temperature' | 'top_p' | 'top_k' | 'min_p'>): Pick<
  TrajectoryChoice,
  'sampling_params'
> {
  const said = Object.entries({ temperature, top_p, top_k, min_p }).filter(([, value]) => value != null);
  return said.length > 0 ? { sampling_params: Object.fromEntries(said) } : {};
}

/** Reports the reader of an answer to the recording and returns the answer. */
function reported<T>(answer: T, { report }: RecordedRequest, read: () => readonly Exchange[]): T {
  report(read);
  return answer;
}

/** Maps the chunks to those that the client reads. */
function mapped<Chunk>(stream: AsyncIterable<Chunk>, take: (chunk: Chunk) => Chunk): AsyncIterator<Chunk> {
  const source = stream[Symbol.asyncIterator]();
  return {
    async next() {
      const read = await source.next();
      return read.done ? read : { done: false, value: take(read.value) };
    },
    async return(value) {
      return (await source.return?.(value)) ?? { done: true, value };
    },
  };
}

function withAsked<Choice extends { logprobs: unknown; token_ids?: unknown; routed_experts?: unknown }>(
  { routed_experts, ...choice }: Choice,
  asked: Asked,
): Choice {
  return {
    ...(choice as Choice),
    ...(asked.experts && routed_experts ? { routed_experts } : {}),
    ...(asked.logprobs ? {} : { logprobs: null }),
    ...(asked.ids ? {} : { token_ids: null }),
  };
}
