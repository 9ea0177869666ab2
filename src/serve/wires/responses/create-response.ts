/** Requests of the responses API -> responses or events, from any service that answers chat completions. */
import { randomUUID } from 'node:crypto';
import { OnpolicyError } from '../../../errors.ts';
import {
  type ChatCompletion,
  type ChatCompletionChunk,
  type ChatCompletionRequest,
  checkRequest,
  type ListQuery,
  type Message,
  type ResponseCompaction,
  type ResponseDeletion,
  type ResponseItemList,
  type ResponseObject,
  type ResponseRequest,
  type ResponseStreamEvent,
  type ResponseTokensCount,
  readingInput,
  type ValidationOptions,
} from '../../../protocol/index.ts';
import type { Answer, CallOptions, Completions, StreamFlag } from '../../../protocol/service/index.ts';
import { AnswerStream, ChatCompletionStream } from '../../../protocol/service/index.ts';
import { answerWithin } from '../answer-within.ts';
import { countPrompt } from '../count-prompt.ts';
import { compact } from './compact.ts';
import { itemPage, storedItems } from './input-items.ts';
import { ResponseStore } from './response-store.ts';
import { outputMessages, type ResolvedRequest, type TranslatedResponse, toChat } from './to-chat.ts';
import { replayEvents, toEvents, toResponse } from './to-events.ts';
import { withoutServerTools } from './tools.ts';

/** The events of one response. */
export class ResponseStream extends AnswerStream<ResponseStreamEvent> {}

/** OpenAI's responses API. Stored responses are kept in memory, and the oldest ones are evicted. */
export interface ResponsesResource {
  /**
   * Answers a request: with `stream: true` as a stream of events, else as a whole.
   * @throws OnpolicyError `INVALID_REQUEST` for bad fields, before anything runs; further codes in `ErrorCode`
   */
  create<Flag extends StreamFlag = undefined>(
    request: ResponseRequest & { stream?: Flag },
    options?: CallOptions,
  ): Promise<Answer<Flag, ResponseStream, ResponseObject>>;
  /** Finds a stored response. Throws `NOT_FOUND`. */
  retrieve(id: string): Promise<ResponseObject>;
  /** Deletes a stored response. Throws `NOT_FOUND`. */
  delete(id: string): Promise<ResponseDeletion>;
  /**
   * Returns a page of the input of a stored response, without the input of earlier responses, newest first by default. Throws `NOT_FOUND`.
   */
  inputItems(id: string, query?: ListQuery): Promise<ResponseItemList>;
  /** Counts the tokens of a request's prompt. */
  countInputTokens(request: ResponseRequest, options?: CallOptions): Promise<ResponseTokensCount>;
  /** Shortens a conversation to its user messages and a summary by the model in place of the rest. */
  compact(request: ResponseRequest, options?: CallOptions): Promise<ResponseCompaction>;
}

type Asked = Pick<Completions, 'createCompletion' | 'renderPrompt'>;

/** Answers an HTTP body. `viewer`: the client whose stored responses may be read; null, the default, allows all. */
export type OfBody<Answer> = (
  input: unknown,
  options?: CallOptions,
  validation?: ValidationOptions,
  viewer?: string | null,
) => Promise<Answer>;

/** Methods of the responses API that take HTTP bodies and the client of a request. */
export type Responses = Pick<ResponsesResource, 'create'> & {
  readonly retrieve: (id: string, viewer?: string | null) => Promise<ResponseObject>;
  readonly delete: (id: string, viewer?: string | null) => Promise<ResponseDeletion>;
  readonly inputItems: (id: string, query?: ListQuery, viewer?: string | null) => Promise<ResponseItemList>;
  readonly answer: OfBody<ResponseObject | ResponseStream>;
  readonly countInputTokens: OfBody<ResponseTokensCount>;
  readonly compact: OfBody<ResponseCompaction>;
  /** Returns the events of a stored response, from this number on. */
  readonly replay: (id: string, first: number, viewer?: string | null) => ResponseStream;
};

const known = new WeakMap<Asked, Responses>();

/** Returns the responses of a service. Each service has one store, which all callers share. */
export function responsesOf(service: Asked): Responses {
  let responses = known.get(service);
  if (!responses) {
    responses = makeResponses(service);
    known.set(service, responses);
  }
  return responses;
}

/** A request read from a body, with its translation. `run`: does the work, and reports errors with the caller's paths. */
type ReadRequest = Omit<TranslatedResponse, 'paths'> & {
  readonly request: ResolvedRequest;
  readonly run: <Result>(work: () => Promise<Result>) => Promise<Result>;
};

function makeResponses(service: Asked): Responses {
  const store = new ResponseStore();
  const read = (
    input: unknown,
    { clientKey = '' }: CallOptions,
    validation: ValidationOptions,
    viewer: string | null,
  ): ReadRequest => {
    const own = readingInput(input, () => withoutServerTools(input, validation));
    return own.paths.runNow(() => {
      const given = checkRequest('ResponseRequest', own.body, own.validation);
      const request = { ...given, input: store.resolve(given.input, clientKey) };
      const { previous_response_id: previous } = request;
      const earlier = previous == null ? [] : store.get(previous, 'previous_response_id', viewer).messages;
      const translated = toChat(request, earlier);
      const run: ReadRequest['run'] = (work) => own.paths.run(() => translated.paths.run(work));
      return { ...translated, request, run };
    });
  };
  const answer: Responses['answer'] = async (input, options = {}, validation = {}, viewer = null) => {
    const { request, chat, history, run } = read(input, options, validation, viewer);
    const asked = request.stream ? { ...chat, stream: true, stream_options: { include_usage: true } } : chat;
    const answered = await run(() => ask(service, asked, request, options)).catch((error: unknown) =>
      failStream(error, request, options, validation),
    );
    const keep = (response: ResponseObject): void => {
      if (request.store === false) return;
      const messages = [...history, ...outputMessages(response.output)];
      const owner = options.clientKey ?? '';
      store.add({ owner, response, input: storedItems(request.input), messages });
    };
    if (Symbol.asyncIterator in answered) {
      const { events, idleEvents } = toEvents(answered, request, keep);
      return new ResponseStream(events, () => answered.abort(), idleEvents);
    }
    const response = toResponse(answered, request);
    keep(response);
    return response;
  };
  return {
    answer,
    create: ((request: ResponseRequest, options?: CallOptions) =>
      answer(request, options)) as ResponsesResource['create'],
    retrieve: async (id, viewer = null) => store.get(id, 'id', viewer).response,
    delete: async (id, viewer = null) => {
      store.delete(id, viewer);
      return { id, object: 'response', deleted: true };
    },
    inputItems: async (id, query = {}, viewer = null) =>
      await itemPage(store.get(id, 'id', viewer).input, query),
    replay: (id, first, viewer = null) => {
      const events = replayEvents(store.get(id, 'id', viewer).response);
      const rest = (async function* () {
        yield* events.slice(first);
      })();
      return new ResponseStream(rest, () => {});
    },
    countInputTokens: async (input, options = {}, validation = {}, viewer = null) => {
      const { chat, run } = read(withInput(input), options, validation, viewer);
      const input_tokens = await run(() => countPrompt(service, chat, options));
      return { object: 'response.input_tokens', input_tokens };
    },
    compact: async (input, options = {}, validation = {}, viewer = null) => {
      const translated = read(withInput(input), options, validation, viewer);
      const request = { truncation: 'auto' } as const;
      const whole = (chat: ChatCompletionRequest) =>
        ask(service, chat, request, options) as Promise<ChatCompletion>;
      return await translated.run(() => compact(translated, whole));
    },
  };
}

/**
 * Returns a stream that begins and then fails, for input that does not fit. Some HTTP clients read the code of an error only from a stream.
 */
function failStream(
  error: unknown,
  { stream, model }: ResolvedRequest,
  { traceId }: CallOptions,
  validation: ValidationOptions,
): ChatCompletionStream {
  const isOverflow = error instanceof OnpolicyError && error.code === 'CONTEXT_OVERFLOW';
  if (!validation.wire || !stream || !isOverflow) throw error;
  const id = `chatcmpl-${traceId ?? randomUUID()}`;
  const created = Math.floor(Date.now() / 1000);
  async function* chunks(): AsyncGenerator<ChatCompletionChunk> {
    yield { id, object: 'chat.completion.chunk', created, model: model ?? '', choices: [] };
    throw error;
  }
  return new ChatCompletionStream(chunks(), () => {});
}

/** Adds an empty input to a body that gives its conversation by `previous_response_id` alone. */
function withInput(body: unknown): unknown {
  const { input } = readingInput(body, () => ({ input: (body as { input?: unknown } | null)?.input }));
  return typeof body === 'object' && body !== null && input == null ? { ...body, input: [] } : body;
}

/** Asks for the answer. With `truncation: 'auto'`, drops the oldest messages until the others fit. */
async function ask(
  service: Asked,
  chat: ChatCompletionRequest,
  { truncation }: Pick<ResponseRequest, 'truncation'>,
  options: CallOptions,
): Promise<ChatCompletion | ChatCompletionStream> {
  for (let dropped = 1, messages = chat.messages; ; dropped *= 2) {
    try {
      return await answerWithin(service, { ...chat, messages }, options);
    } catch (error) {
      const isTooLong = error instanceof OnpolicyError && error.code === 'CONTEXT_OVERFLOW';
      const shorter = isTooLong && truncation === 'auto' ? withoutOldest(messages, dropped) : messages;
      if (shorter.length === messages.length) throw error;
      messages = shorter;
    }
  }
}

/**
 * Drops `count` of the oldest messages. System messages at the start and the last message stay. The result of a call is dropped with its
 * call.
 */
function withoutOldest(messages: readonly Message[], count: number): readonly Message[] {
  const isSystem = ({ role }: Message): boolean => role === 'system' || role === 'developer';
  const first = messages.findIndex((message) => !isSystem(message));
  let next = Math.min(first + count, messages.length - 1);
  while (next < messages.length - 1 && messages[next]!.role === 'tool') next += 1;
  return first < 0 ? messages : [...messages.slice(0, first), ...messages.slice(next)];
}
