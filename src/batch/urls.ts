/** The url and body of a row -> its answer, by a service. Each wire that the library speaks is one line here. */
import { OnpolicyError } from '../errors.ts';
import {
  type BatchUrl,
  type ChatCompletionRequest,
  type Checked,
  type ClassifyRequest,
  checkChatRequest,
  checkClassifyRequest,
  checkEmbeddingRequest,
  checkRerankRequest,
  checkScoreRequest,
  checkTextCompletionRequest,
  type EmbeddingRequest,
  fault,
  invalidRequest,
  type RerankRequest,
  type ScoreRequest,
  type TextCompletionRequest,
  type ValidationOptions,
} from '../protocol/index.ts';
import type { CallOptions, Completions } from '../service.ts';
import { createMessage, responsesOf } from '../wires/index.ts';

/** What answers rows: a service, and the methods behind its checks. */
export type RowService = {
  readonly service: Pick<Completions, 'createCompletion'>;
  readonly chat: Ask<ChatCompletionRequest>;
  readonly text?: Ask<TextCompletionRequest>;
  readonly embed?: Ask<EmbeddingRequest>;
  readonly rerank?: Ask<RerankRequest>;
  readonly score?: Ask<ScoreRequest>;
  readonly classify?: Ask<ClassifyRequest>;
};

type Ask<Request> = (request: Checked<Request>, options: CallOptions) => Promise<object>;

const UNSAMPLED = new Set<BatchUrl>(['/v1/embeddings', '/v1/rerank', '/v1/score', '/v1/classify']);

type Body = Readonly<Record<string, unknown>>;

/** Answers a row. @throws OnpolicyError as a call of the service does */
export type AnswerRow = (url: BatchUrl, body: Body, call: CallOptions) => Promise<object>;

/** As over HTTP. Fields that nobody knows stay: a body may be the caller's own. */
const VALIDATION: ValidationOptions = { wire: true };

const WIRES: Readonly<Record<BatchUrl, (to: RowService, body: Body, call: CallOptions) => Promise<object>>> =
  {
    '/v1/chat/completions': ({ chat }, body, call) => chat(checkChatRequest(body, VALIDATION), call),
    '/v1/completions': ({ text }, body, call) =>
      able(text, 'text completions')(checkTextCompletionRequest(body, VALIDATION), call),
    '/v1/embeddings': ({ embed }, body, call) =>
      able(embed, 'embeddings')(checkEmbeddingRequest(body, VALIDATION), call),
    '/v1/rerank': ({ rerank }, body, call) =>
      able(rerank, 'rankings')(checkRerankRequest(body, VALIDATION), call),
    '/v1/score': ({ score }, body, call) => able(score, 'scores')(checkScoreRequest(body, VALIDATION), call),
    '/v1/classify': ({ classify }, body, call) =>
      able(classify, 'labels')(checkClassifyRequest(body, VALIDATION), call),
    '/v1/responses': ({ service }, body, call) => responsesOf(service).answer(body, call, VALIDATION),
    '/v1/messages': ({ service }, body, call) => createMessage(service, body, call, VALIDATION),
  };

/** Answers rows by a service. */
export function answerRows(service: RowService): AnswerRow {
  return async (url, body, call) => await WIRES[url](service, body, call);
}

/** Whether a row's answer is drawn: all other answers are the same each time. */
export function isSampled(url: BatchUrl): boolean {
  return !UNSAMPLED.has(url);
}

/** Whether rows can be sent there. */
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

function able<Method>(method: Method | undefined, what: string): Method {
  if (!method) throw new OnpolicyError('UNSUPPORTED', `this service has no ${what}`);
  return method;
}
