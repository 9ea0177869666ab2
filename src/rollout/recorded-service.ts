/** A service -> the same service with one model, which reports each answer with ids and log-probabilities. Embeddings pass unrecorded. */
import { ChatCompletionStream, TextCompletionStream } from '../answer/index.ts';
import { CheckedService, INNER, innerOf } from '../checked-service.ts';
import { errorAt } from '../errors.ts';
import {
  type ChatCompletionChunk,
  type ChatCompletionRequest,
  type ChatRequestOptions,
  type Checked,
  givenTools,
  type TextCompletionChoice,
  type TextCompletionChunk,
  type TextCompletionChunkChoice,
  type TextCompletionRequest,
} from '../protocol/index.ts';
import type { CallOptions, ChatAnswer, Completions, InnerService, TextAnswer } from '../service.ts';
import { ChunkJoiner, choicesOf, type Exchange, TextJoiner } from './exchange.ts';

/** One request's place in the recording. */
export type Place = {
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
  readonly begin: () => Place;
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
    refuseBeams(request);
    const { seed, report } = this.#options.begin();
    const recorded = {
      ...request,
      model: this.#options.model,
      logprobs: request.logprobs ?? 0,
      return_token_ids: true,
      ...(seed === null ? {} : { seed: request.seed ?? seed }),
    };
    const answer = await ask(recorded, this.#untilEnd(options));
    const joiner = new TextJoiner();
    const asked = {
      logprobs: request.logprobs != null,
      ids: request.return_token_ids === true,
      experts: false,
    };
    const show = <Choice extends TextCompletionChoice | TextCompletionChunkChoice>(
      choice: Choice,
    ): Choice => ({
      ...withAsked(choice, asked),
      ...(asked.ids ? {} : { prompt_token_ids: null }),
    });
    report(() => joiner.exchanges());
    if (!(Symbol.asyncIterator in answer)) {
      joiner.add(answer.choices);
      return { ...answer, choices: answer.choices.map(show) };
    }
    const source = answer;
    const chunks = async function* (): AsyncGenerator<TextCompletionChunk> {
      for await (const chunk of source) {
        joiner.add(chunk.choices);
        yield { ...chunk, choices: chunk.choices.map(show) };
      }
    };
    return new TextCompletionStream(chunks(), () => source.abort());
  }

  /** Options of a call that ends with the recording. */
  #untilEnd({ signal }: CallOptions): CallOptions {
    const end = this.#options.signal;
    return { signal: signal ? AbortSignal.any([signal, end]) : end };
  }

  async #record(
    request: Checked<ChatCompletionRequest>,
    options: CallOptions,
    ask: InnerService['chat'],
  ): Promise<ChatAnswer> {
    const { model, routedExperts } = this.#options;
    refuseBeams(request);
    const { seed, report } = this.#options.begin();
    const told = {
      messages: [...request.messages],
      tools: givenTools(request),
    };
    const recorded = {
      ...request,
      model,
      logprobs: true,
      return_token_ids: true,
      ...(routedExperts ? { return_routed_experts: true } : {}),
      ...(seed === null ? {} : { seed: request.seed ?? seed }),
    };
    const answer = await ask(recorded, this.#untilEnd(options));
    const asked = {
      logprobs: request.logprobs === true,
      ids: request.return_token_ids === true,
      experts: request.return_routed_experts === true,
    };
    if (Symbol.asyncIterator in answer)
      return recordedStream(answer, asked, (read) => report(() => [{ ...told, choices: read() }]));
    const choices = choicesOf(answer);
    report(() => [{ ...told, choices }]);
    return {
      ...answer,
      prompt_token_ids: asked.ids ? answer.prompt_token_ids : null,
      choices: answer.choices.map((choice) => withAsked(choice, asked)),
    };
  }
}

function refuseBeams(request: { readonly use_beam_search?: boolean | null | undefined }): void {
  if (!request.use_beam_search) return;
  throw errorAt('use_beam_search', 'UNSUPPORTED', 'beams are not sampled, so they cannot be trained on');
}

type Asked = { readonly logprobs: boolean; readonly ids: boolean; readonly experts: boolean };

/** Joins the chunks that the client reads. */
function recordedStream(
  stream: ChatCompletionStream,
  asked: Asked,
  report: (choices: () => Exchange['choices']) => void,
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
