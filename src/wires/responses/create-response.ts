/** Requests of the responses API -> responses or events, of any service that answers chat completions. */
import { randomUUID } from 'node:crypto';
import { AnswerStream, ChatCompletionStream } from '../../answer/index.ts';
import { OnpolicyError } from '../../errors.ts';
import {
  type ChatCompletion,
  type ChatCompletionChunk,
  type ChatCompletionRequest,
  checkRequest,
  type Message,
  type ResponseDeletion,
  type ResponseItemList,
  type ResponseObject,
  type ResponseRequest,
  type ResponseStreamEvent,
  type ValidationOptions,
} from '../../protocol/index.ts';
import type { CallOptions, Completions } from '../../service.ts';
import { answerWithin } from '../answer-within.ts';
import { ResponseStore } from './response-store.ts';
import { outputMessages, toChat } from './to-chat.ts';
import { toEvents } from './to-events.ts';
import { beginResponse, endResponse, toItems } from './to-response.ts';
import { namesOfTools, withoutServerTools } from './tools.ts';

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
  /** The input of a stored response, without that of earlier ones. Throws `NOT_FOUND`. */
  inputItems(id: string): Promise<ResponseItemList>;
}

type Asked = Pick<Completions, 'createCompletion'>;

/** The same, with options of validation for bodies. */
export type Responses = ResponsesResource & {
  readonly answer: (
    input: unknown,
    options?: CallOptions,
    validation?: ValidationOptions,
  ) => Promise<ResponseObject | ResponseStream>;
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
  const answer: Responses['answer'] = async (input, options = {}, validation = {}) => {
    const own = withoutServerTools(input, validation);
    const given = own.paths.runNow(() => checkRequest('ResponseRequest', own.body, validation));
    const request = { ...given, input: store.resolve(given.input) };
    const { previous_response_id: previous } = request;
    const earlier = previous == null ? [] : store.get(previous, 'previous_response_id').messages;
    const { chat, history, paths } = own.paths.runNow(() => toChat(request, earlier));
    const asked = request.stream ? { ...chat, stream: true, stream_options: { include_usage: true } } : chat;
    const answered = await own.paths
      .run(() => paths.run(() => ask(service, asked, request, options)))
      .catch((error: unknown) => failStream(error, request, options, validation));
    const keep = (response: ResponseObject): void => {
      if (request.store === false) return;
      const items =
        typeof request.input === 'string'
          ? [{ role: 'user' as const, content: request.input }]
          : request.input;
      store.add({ response, input: items, messages: [...history, ...outputMessages(response.output)] });
    };
    if (Symbol.asyncIterator in answered) {
      const { events, idleEvents } = toEvents(answered, request, keep);
      return new ResponseStream(events, () => answered.abort(), idleEvents);
    }
    const isCut = answered.choices[0]!.finish_reason === 'length';
    const response = endResponse(
      beginResponse(request, answered),
      toItems(answered, namesOfTools(request.tools)),
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
    inputItems: async (id) => {
      const data = [...store.get(id, 'id').input];
      return { object: 'list', data, has_more: false, first_id: null, last_id: null };
    },
  };
}

/** Over HTTP a stream of input that does not fit begins and fails: some clients see the code of the error only there. */
function failStream(
  error: unknown,
  { stream, model }: ResponseRequest,
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

/** Asks for the answer. With `truncation: 'auto'`, drops the oldest messages until the others fit. */
async function ask(
  service: Asked,
  chat: ChatCompletionRequest,
  { truncation }: ResponseRequest,
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
