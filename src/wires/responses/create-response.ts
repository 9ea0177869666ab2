/** Requests of the responses API -> responses or events, of any service that answers chat completions. */
import { AnswerStream, type ChatCompletionStream } from '../../answer/index.ts';
import { OnpolicyError } from '../../errors.ts';
import {
  type ChatCompletion,
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
import type { CallOptions, Completions } from '../../service.ts';
import type { Renders } from '../renders.ts';
import { compact } from './compact.ts';
import { pageOf, storedItems } from './input-items.ts';
import { ResponseStore } from './response-store.ts';
import { outputMessages, type TranslatedResponse, toChat } from './to-chat.ts';
import { replayEvents, toEvents } from './to-events.ts';
import { beginResponse, endResponse, toItems } from './to-response.ts';

/** The events of one response. */
export class ResponseStream extends AnswerStream<ResponseStreamEvent> {}

/** Responses of OpenAI's responses API. Those that are stored lie in memory, the oldest ones give way. */
export interface ResponsesResource {
  /**
   * Answers a request as a stream of events.
   * @throws OnpolicyError `INVALID_REQUEST` for bad fields, before anything runs; further codes in `ErrorCode`
   */
  create(request: ResponseRequest & { stream: true }, options?: CallOptions): Promise<ResponseStream>;
  /** Answers a request as a whole. */
  create(
    request: ResponseRequest & { stream?: false | null },
    options?: CallOptions,
  ): Promise<ResponseObject>;
  /** Answers a request, as its `stream` says. */
  create(request: ResponseRequest, options?: CallOptions): Promise<ResponseObject | ResponseStream>;
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

type Asked = Pick<Completions, 'createCompletion'> & Partial<Renders>;

/** What takes bodies of HTTP. */
type OfBody<Answer> = (
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

function makeResponses(service: Asked): Responses {
  const store = new ResponseStore();
  const read = (
    input: unknown,
    validation: ValidationOptions,
  ): TranslatedResponse & { request: ResponseRequest } => {
    const request = checkRequest('ResponseRequest', input, validation);
    const { previous_response_id: previous } = request;
    const earlier = previous == null ? [] : store.get(previous, 'previous_response_id').messages;
    return { request, ...toChat(request, earlier) };
  };
  const answer: Responses['answer'] = async (input, options = {}, validation = {}) => {
    const { request, chat, history, paths } = read(input, validation);
    const asked = request.stream ? { ...chat, stream: true, stream_options: { include_usage: true } } : chat;
    const answered = await paths.run(() => ask(service, asked, request, options));
    const keep = (response: ResponseObject): void => {
      if (request.store === false) return;
      const messages = [...history, ...outputMessages(response.output)];
      store.add({ response, input: storedItems(request.input), messages });
    };
    if (Symbol.asyncIterator in answered)
      return new ResponseStream(toEvents(answered, request, keep), () => answered.abort());
    const isCut = answered.choices[0]!.finish_reason === 'length';
    const response = endResponse(
      beginResponse(request, answered),
      toItems(request, answered),
      isCut,
      answered.usage,
    );
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
    inputItems: async (id, query = {}) => pageOf(store.get(id, 'id').input, query),
    replay: (id, first) => {
      const events = replayEvents(store.get(id, 'id').response);
      const rest = (async function* () {
        yield* events.slice(first);
      })();
      return new ResponseStream(rest, () => {});
    },
    countInputTokens: async (input, options = {}, validation = {}) => {
      const { chat, paths } = read(withInput(input), validation);
      if (!service.renderPrompt) throw new OnpolicyError('UNSUPPORTED', 'this service has no prompts');
      const { count } = await paths.run(() => service.renderPrompt!(chat, options));
      return { object: 'response.input_tokens', input_tokens: count };
    },
    compact: async (input, options = {}, validation = {}) => {
      const translated = read(withInput(input), validation);
      const request = { truncation: 'auto' } as const;
      const whole = (chat: ChatCompletionRequest) =>
        ask(service, chat, request, options) as Promise<ChatCompletion>;
      return await translated.paths.run(() => compact(translated, whole));
    },
  };
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
      return await service.createCompletion({ ...chat, messages }, options);
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
