/** Requests of the responses API -> responses or events, of any service that answers chat completions. */
import { randomUUID } from 'node:crypto';
import { AnswerStream, ChatCompletionStream } from '../../answer/index.ts';
import { OnpolicyError } from '../../errors.ts';
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
  type ValidationOptions,
} from '../../protocol/index.ts';
import type { Answer, CallOptions, Completions, StreamFlag } from '../../service.ts';
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

/** Responses of OpenAI's responses API. Those that are stored lie in memory, the oldest ones give way. */
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
  /** Forgets a stored response. Throws `NOT_FOUND`. */
  delete(id: string): Promise<ResponseDeletion>;
  /** A page of the input of a stored response, without that of earlier ones, newest first by default. Throws `NOT_FOUND`. */
  inputItems(id: string, query?: ListQuery): Promise<ResponseItemList>;
  /** Counts the tokens of a request's prompt. */
  countInputTokens(request: ResponseRequest, options?: CallOptions): Promise<ResponseTokensCount>;
  /** Shortens a conversation: to its messages of the user, and a summary by the model in place of the rest. */
  compact(request: ResponseRequest, options?: CallOptions): Promise<ResponseCompaction>;
}

type Asked = Pick<Completions, 'createCompletion' | 'renderPrompt'>;

/** What takes bodies of HTTP. */
export type OfBody<Answer> = (
  input: unknown,
  options?: CallOptions,
  validation?: ValidationOptions,
) => Promise<Answer>;

/** The same, with options of validation for bodies. */
export type Responses = Omit<ResponsesResource, 'countInputTokens' | 'compact'> & {
  readonly answer: OfBody<ResponseObject | ResponseStream>;
  readonly countInputTokens: OfBody<ResponseTokensCount>;
  readonly compact: OfBody<ResponseCompaction>;
  /** The events of a stored response, from this number on. */
  readonly replay: (id: string, first: number) => ResponseStream;
};

const known = new WeakMap<Asked, Responses>();

/** The responses of a service: one store for each, whoever asks. */
export function responsesOf(service: Asked): Responses {
  let responses = known.get(service);
  if (!responses) {
    responses = makeResponses(service);
    known.set(service, responses);
  }
  return responses;
}

/** A request of a body, and what is asked for it. `run`: does the work; its errors are about the caller's paths. */
type ReadRequest = Omit<TranslatedResponse, 'paths'> & {
  readonly request: ResolvedRequest;
  readonly run: <Result>(work: () => Promise<Result>) => Promise<Result>;
};

function makeResponses(service: Asked): Responses {
  const store = new ResponseStore();
  const read = (input: unknown, validation: ValidationOptions): ReadRequest => {
    const own = withoutServerTools(input, validation);
    return own.paths.runNow(() => {
      const given = checkRequest('ResponseRequest', own.body, own.validation);
      const request = { ...given, input: store.resolve(given.input) };
      const { previous_response_id: previous } = request;
      const earlier = previous == null ? [] : store.get(previous, 'previous_response_id').messages;
      const translated = toChat(request, earlier);
      const run: ReadRequest['run'] = (work) => own.paths.run(() => translated.paths.run(work));
      return { ...translated, request, run };
    });
  };
  const answer: Responses['answer'] = async (input, options = {}, validation = {}) => {
    const { request, chat, history, run } = read(input, validation);
    const asked = request.stream ? { ...chat, stream: true, stream_options: { include_usage: true } } : chat;
    const answered = await run(() => ask(service, asked, request, options)).catch((error: unknown) =>
      failStream(error, request, options, validation),
    );
    const keep = (response: ResponseObject): void => {
      if (request.store === false) return;
      const messages = [...history, ...outputMessages(response.output)];
      store.add({ response, input: storedItems(request.input), messages });
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
    retrieve: async (id) => store.get(id, 'id').response,
    delete: async (id) => {
      store.delete(id);
      return { id, object: 'response', deleted: true };
    },
    inputItems: async (id, query = {}) => await itemPage(store.get(id, 'id').input, query),
    replay: (id, first) => {
      const events = replayEvents(store.get(id, 'id').response);
      const rest = (async function* () {
        yield* events.slice(first);
      })();
      return new ResponseStream(rest, () => {});
    },
    countInputTokens: async (input, options = {}, validation = {}) => {
      const { chat, run } = read(withInput(input), validation);
      const input_tokens = await run(() => countPrompt(service, chat, options));
      return { object: 'response.input_tokens', input_tokens };
    },
    compact: async (input, options = {}, validation = {}) => {
      const translated = read(withInput(input), validation);
      const request = { truncation: 'auto' } as const;
      const whole = (chat: ChatCompletionRequest) =>
        ask(service, chat, request, options) as Promise<ChatCompletion>;
      return await translated.run(() => compact(translated, whole));
    },
  };
}

/** Over HTTP a stream of input that does not fit begins and fails: some clients see the code of the error only there. */
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

/** Conversations may be given by `previous_response_id` alone. */
function withInput(body: unknown): unknown {
  const { input } = (body ?? {}) as { input?: unknown };
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
      return (await answerWithin(service, { ...chat, messages }, options)).answer;
    } catch (error) {
      const isTooLong = error instanceof OnpolicyError && error.code === 'CONTEXT_OVERFLOW';
      const shorter = isTooLong && truncation === 'auto' ? withoutOldest(messages, dropped) : messages;
      if (shorter.length === messages.length) throw error;
      messages = shorter;
    }
  }
}

/** Without the oldest messages; those of the system at the begin stay, and the last one. A result of a call goes with its call. */
function withoutOldest(messages: readonly Message[], count: number): readonly Message[] {
  const isSystem = ({ role }: Message): boolean => role === 'system' || role === 'developer';
  const first = messages.findIndex((message) => !isSystem(message));
  let next = Math.min(first + count, messages.length - 1);
  while (next < messages.length - 1 && messages[next]!.role === 'tool') next += 1;
  return first < 0 ? messages : [...messages.slice(0, first), ...messages.slice(next)];
}
