/** The url and body of a row -> its answer, by a service. Each wire that the library speaks is one line here. */
import { OnpolicyError } from '../../errors.ts';
import {
  BATCH_URLS,
  type BatchUrl,
  fault,
  invalidRequest,
  type ValidationOptions,
} from '../../protocol/index.ts';
import {
  type CallOptions,
  type Completions,
  METHODS,
  type Method,
  type MethodName,
  methods,
} from '../../protocol/service/index.ts';
import { callChecked, hasMethod } from '../checked-calls.ts';
import { createMessage, responsesOf } from '../wires/index.ts';

type Body = Readonly<Record<string, unknown>>;

/** Options of the call of a row. */
export type RowCall = CallOptions & {
  /** Called with the path of each field of the body that has no effect. */
  readonly onIgnored?: (path: string) => void;
};

/** Answers a row. @throws OnpolicyError as a call of the service does */
export type AnswerRow = (url: BatchUrl, body: Body, call: RowCall) => Promise<object>;

/** Bodies have the forms of HTTP. Unknown fields are errors, as in all requests in this process. */
const VALIDATION: ValidationOptions = { wire: true, refuseUnknown: true };

type Ask = (to: Completions, body: Body, call: CallOptions) => Promise<object>;

/** Methods for requests of other APIs. They are translated here instead of called on the service. */
const WIRES: { readonly [Name in MethodName]?: Ask } = {
  createResponse: (service, body, call) => responsesOf(service).answer(body, call, VALIDATION),
  createMessage: (service, body, call) => createMessage(service, body, call, VALIDATION),
};

const URLS: ReadonlySet<string> = new Set(BATCH_URLS);
const BY_URL = new Map(
  methods.flatMap(([name, { http }]) => (http && URLS.has(http[1]) ? [[http[1], name] as const] : [])),
);

export function answerRows(service: Completions): AnswerRow {
  return async (url, body, { onIgnored: _, ...call }) => {
    const name = BY_URL.get(url)!;
    const { what, check, translate }: Method = METHODS[name];
    const wire = WIRES[name];
    if (wire) return await wire(service, body, call);
    if (!hasMethod(service, name)) throw new OnpolicyError('UNSUPPORTED', `this service has no ${what}`);
    return (await callChecked(
      service,
      name,
      check!(translate ? translate(body) : body, VALIDATION),
      call,
    )) as object;
  };
}

/** Returns the method that answers rows of a url. */
export function methodOfUrl(url: BatchUrl): MethodName {
  return BY_URL.get(url)!;
}

/** Returns true if the answers of a url are sampled. All other answers are the same for equal requests. */
export function isSampled(url: BatchUrl): boolean {
  const { Stream, answers }: Method = METHODS[methodOfUrl(url)];
  return Stream !== undefined || answers === true;
}

export function isBatchUrl(url: unknown): url is BatchUrl {
  return BY_URL.has(url as BatchUrl);
}

/** Fields by which {@link urlOf} knows the url of a body. */
export const URL_FIELDS = ['messages', 'prompt'] as const;

/** Returns the url for a body without one, by its fields. Returns undefined if several urls are possible. */
export function urlOf(body: Body): BatchUrl | undefined {
  if ('messages' in body) return METHODS.createCompletion.http[1];
  return 'prompt' in body ? METHODS.createTextCompletion.http[1] : undefined;
}

/** Returns the error for a row with an unsupported url. */
export function urlFault(url: unknown): OnpolicyError {
  const expected = `one of ${[...BY_URL.keys()].join(', ')}`;
  return invalidRequest({ listed: [fault(['url'], 'value', expected, url)], count: 1 });
}
