/** A method of the table and its arguments -> the call of its endpoint at a server, and the answer. */
import { errorAt, OnpolicyError } from '../../../errors.ts';
import { type ChatCompletionRequest, replaceBytes, toDataUri } from '../../../protocol/index.ts';
import {
  type CallArguments,
  type CallOptions,
  ChatCompletionStream,
  CONTROL_PATH,
  METHODS,
  type Method,
  type MethodName,
} from '../../../protocol/service/index.ts';
import { BACKGROUND_HEADER } from '../headers.ts';
import { fromEventStream } from './event-stream.ts';
import type { RemoteCall, RetryingClient } from './retrying-client.ts';

/** A request with the fields that this file reads. */
type AnyRequest = Parameters<NonNullable<Method['repeats']>>[0] &
  Pick<Partial<ChatCompletionRequest>, 'messages' | 'seed' | 'stream' | 'logits_processors'> & {
    readonly chat_request?: ChatCompletionRequest | null;
  };

/** Calls the endpoint of a method. `args`: its arguments and the options of the call. */
export async function callEndpoint(
  client: RetryingClient,
  name: MethodName,
  args: CallArguments,
): Promise<unknown> {
  const { args: names, http, repeats, Stream }: Method = METHODS[name];
  const [method, pattern] = http!;
  const given = new Map(names.map((argument, i) => [argument, args[i]]));
  const [request, query] = [given.get('request'), given.get('query')] as (AnyRequest | undefined)[];
  const options = (args[names.length] ?? {}) as CallOptions;
  if (request) refuseFunctions(request);
  const call: RemoteCall = {
    method,
    path: withArguments(pattern, given) + inUrl(query),
    ...(request ? { body: toJson(request) } : {}),
    headers: headersOf(options),
    signal: options.signal,
    isRepeatable: method === 'GET' || (repeats?.(request ?? {}) ?? false),
    isStream: Stream !== undefined && request?.stream === true,
  };
  if (!call.isStream) return await client.json(call);
  const open = await client.open(call);
  const type = open.response.header('content-type') ?? '';
  const stop = (why: string) => open.stop(new OnpolicyError('ABORTED', why));
  if (type.startsWith('text/event-stream'))
    return withControl(
      new Stream!(fromEventStream(open), () => stop('the stream was aborted')),
      client,
      options,
    );
  stop('not a stream');
  open.end();
  throw new OnpolicyError('NETWORK_FAILED', `expected a stream, the server sent ${type || 'nothing'}`);
}

/** Lets a stream of a chat end its reasoning at the server. Returns any other stream unchanged. */
function withControl(stream: object, client: RetryingClient, options: CallOptions): object {
  if (!(stream instanceof ChatCompletionStream)) return stream;
  return stream.endReasoningElsewhere(async (id) => {
    const call: RemoteCall = {
      method: 'POST',
      path: CONTROL_PATH,
      body: JSON.stringify({ id, action: 'reasoning_end' }),
      headers: headersOf(options),
      signal: options.signal,
      isRepeatable: false,
      isStream: false,
    };
    return ((await client.json(call)) as { success?: boolean }).success === true;
  });
}

export function headersOf({ traceId, background }: CallOptions): Readonly<Record<string, string>> {
  return {
    ...(traceId === undefined ? {} : { 'x-request-id': traceId }),
    ...(background ? { [BACKGROUND_HEADER]: 'true' } : {}),
  };
}

/** Returns a path with its `{id}` and `{operation}` filled in. */
function withArguments(pattern: string, given: ReadonlyMap<string, unknown>): string {
  return pattern.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(given.get(name))));
}

function inUrl(query: object | undefined): string {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null);
  const text = new URLSearchParams(given.map(([key, value]): [string, string] => [key, String(value)]));
  return given.length === 0 ? '' : `?${text}`;
}

/** JSON with all digits of a seed of type bigint. */
function toJson(request: AnyRequest): string {
  const { messages, chat_request: chat, ...others } = request;
  if (chat) return `${JSON.stringify(others).slice(0, -1)},"chat_request":${toJson(chat)}}`;
  const whole = messages ? { ...request, messages: replaceBytes(messages, toDataUri) } : request;
  if (typeof request.seed !== 'bigint') return JSON.stringify(whole);
  const { seed, ...rest } = whole;
  return `${JSON.stringify(rest).slice(0, -1)},"seed":${seed}}`;
}

function refuseFunctions({ logits_processors: processors }: AnyRequest): void {
  const index = processors?.findIndex((processor) => typeof processor === 'function') ?? -1;
  if (index < 0) return;
  const text = 'a function cannot be sent to a server; name a registered one';
  throw errorAt(`logits_processors.${index}`, 'UNSUPPORTED', text);
}
