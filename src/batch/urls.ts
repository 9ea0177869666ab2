/** The url and body of a row -> its answer, by a service. Each wire that the library speaks is one line here. */
import { OnpolicyError } from '../errors.ts';
import { type BatchUrl, fault, invalidRequest, type ValidationOptions } from '../protocol/index.ts';
import { type CallOptions, type Completions, type Inner, type InnerService, methods } from '../service.ts';
import { createMessage, responsesOf } from '../wires/index.ts';

/** What answers rows: a service, and the methods behind its checks. */
export type RowService = InnerService & { readonly service: Pick<Completions, 'createCompletion'> };

type Body = Readonly<Record<string, unknown>>;

/** Answers a row. @throws OnpolicyError as a call of the service does */
export type AnswerRow = (url: BatchUrl, body: Body, call: CallOptions) => Promise<object>;

/** As over HTTP. Fields that nobody knows stay: a body may be the caller's own. */
const VALIDATION: ValidationOptions = { wire: true };

type Ask = (to: RowService, body: Body, call: CallOptions) => Promise<object>;

const WIRES: Readonly<Record<string, Ask>> = {
  ...Object.fromEntries(
    methods.flatMap(([name, { what, check, path }]): [string, Ask][] => {
      const ask: Ask = (to, body, call) => {
        if (!to[name]) throw new OnpolicyError('UNSUPPORTED', `this service has no ${what}`);
        return (to[name] as Inner<unknown, object>)(check(body, VALIDATION) as never, call);
      };
      return path === undefined ? [] : [[path, ask]];
    }),
  ),
  '/v1/responses': ({ service }, body, call) => responsesOf(service).answer(body, call, VALIDATION),
  '/v1/messages': ({ service }, body, call) => createMessage(service, body, call, VALIDATION),
};

export function answerRows(service: RowService): AnswerRow {
  return async (url, body, call) => await WIRES[url]!(service, body, call);
}

/** Whether a row's answer is drawn: all other answers are the same each time. */
export function isSampled(url: BatchUrl): boolean {
  return !methods.some(([, { path, texts }]) => path === url && texts);
}

export function isBatchUrl(url: unknown): url is BatchUrl {
  return typeof url === 'string' && Object.hasOwn(WIRES, url);
}

/** The url of a request that has none; undefined where several can be meant. */
export function urlOf(body: Body): BatchUrl | undefined {
  if ('messages' in body) return '/v1/chat/completions';
  return 'prompt' in body ? '/v1/completions' : undefined;
}

/** The error of a row with another url. */
export function urlFault(url: unknown): OnpolicyError {
  const expected = `one of ${Object.keys(WIRES).join(', ')}`;
  return invalidRequest({ listed: [fault(['url'], 'value', expected, url)], count: 1 });
}
