/** A service -> the same service with one model, which reports each answer with ids and log-probabilities. Embeddings pass unrecorded. */
import { ChatCompletionStream, TextCompletionStream } from '../answer/index.ts';
import { CheckedService, INNER, innerOf } from '../checked-service.ts';
import { errorAt } from '../errors.ts';
import {
  type ChatCompletion,
  type ChatCompletionChunk,
  type ChatCompletionRequest,
  type ChatRequestOptions,
  type Checked,
  givenTools,
  type TextCompletion,
  type TextCompletionChunk,
  type TextCompletionRequest,
} from '../protocol/index.ts';
import type { CallOptions, ChatAnswer, Completions, InnerService, TextAnswer } from '../service.ts';
import { ChunkJoiner, type Exchange, textChunk, wholeChunk } from './exchange.ts';

/** One request's place in the recording. */
export type RecordedRequest = {
  /** For a request that has none. */
  readonly seed: number | null;
  /** Takes what reads the answer, as far as it came. */
  readonly report: (read: () => readonly Exchange[]) => void;
};

/** What is told about requests. */
export type RecordedServiceOptions = {
  /** The model of all requests, whatever they name. */
  readonly model: string;
  /** Whether chats keep the experts of their tokens, whether they ask for them or not. */
  readonly routedExperts: boolean;
  /** Called when a request begins; throws when the recording has ended. */
  readonly begin: () => RecordedRequest;
  /** Ends running requests. */
  readonly signal: AbortSignal;
};

/** Clients get the fields that they asked for; the recording gets ids and log-probabilities. */
export class RecordedService extends CheckedService {
  readonly #options: RecordedServiceOptions;
  readonly [INNER]: InnerService;

  constructor(service: Completions, options: RecordedServiceOptions) {
    super();
    this.#options = options;
    const { chat, text, embed } = innerOf(service);
    this[INNER] = {
      chat: (request, call) => this.#record(request, call, chat),
      ...(text ? { text: (request, call) => this.#recordText(request, call, text) } : {}),
      // By whatever model the request names: nothing is sampled, so nothing is recorded.
      ...(embed ? { embed: (request, call) => embed(request, this.#untilEnd(call)) } : {}),
    };
  }

  /** @internal A model that writes broken arguments is told so by the agent, and learns from it: that ends no rollout. */
  readonly allowBrokenArguments = true;

  protected override get limits(): ChatRequestOptions {
    return { allowBrokenArguments: this.allowBrokenArguments };
  }

  protected enter(): void {} // `begin` refuses requests once the recording has ended

  /** Leaves the service open: others use it too. */
  async close(): Promise<void> {}

  /** Each choice is a history of its own: the ids of a prompt and of what continues it. */
  async #recordText(
    request: Checked<TextCompletionRequest>,
    options: CallOptions,
    ask: NonNullable<InnerService['text']>,
  ): Promise<TextAnswer> {
    const { place, call, more } = this.#begin(request, options);
    const answer = await ask({ ...request, ...more, logprobs: request.logprobs ?? 0 }, call);
    const asked = { ...askedOf(request), logprobs: request.logprobs != null };
    const joiner = new ChunkJoiner();
    const read = () => joiner.choices().map((choice) => ({ messages: [], tools: null, choices: [choice] }));
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

  async #record(
    request: Checked<ChatCompletionRequest>,
    options: CallOptions,
    ask: InnerService['chat'],
  ): Promise<ChatAnswer> {
    const { place, call, more } = this.#begin(request, options);
    const told = { messages: [...request.messages], tools: givenTools(request) };
    const experts = this.#options.routedExperts ? { return_routed_experts: true } : {};
    const answer = await ask({ ...request, ...more, ...experts, logprobs: true }, call);
    const asked = { ...askedOf(request), logprobs: request.logprobs === true };
    const joiner = new ChunkJoiner();
    const read = () => [{ ...told, choices: joiner.choices() }];
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
    return reported(new ChatCompletionStream(mapped(answer, take), () => answer.abort()), place, read);
  }

  /** The place of a request, the options of its call, which ends with the recording, and fields that it gets. */
  #begin(request: Pick<ChatCompletionRequest, 'seed' | 'use_beam_search'>, options: CallOptions) {
    if (request.use_beam_search)
      throw errorAt('use_beam_search', 'UNSUPPORTED', 'beams are not sampled, so they cannot be trained on');
    const place = this.#options.begin();
    const seed = request.seed ?? place.seed;
    const more = { model: this.#options.model, return_token_ids: true as const };
    return { place, call: this.#untilEnd(options), more: seed === null ? more : { ...more, seed } };
  }

  /** Options of a call that ends with the recording. */
  #untilEnd({ signal }: CallOptions): CallOptions {
    const end = this.#options.signal;
    return { signal: signal ? AbortSignal.any([signal, end]) : end };
  }
}

/** What a client asked for; the rest is for the recording. */
type Asked = { readonly logprobs: boolean; readonly ids: boolean; readonly experts: boolean };

function askedOf(
  request: Pick<ChatCompletionRequest, 'return_token_ids' | 'return_routed_experts'>,
): Omit<Asked, 'logprobs'> {
  return { ids: request.return_token_ids === true, experts: request.return_routed_experts === true };
}

/** An answer whose reading is recorded from now on. */
function reported<T>(answer: T, { report }: RecordedRequest, read: () => readonly Exchange[]): T {
  report(read);
  return answer;
}

/** The chunks that a client reads. */
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
