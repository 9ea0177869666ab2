/** A method of the table with an endpoint -> the handler that checks its request and calls it. */
import { CHAT_FIELD, type DecisionRequest, PathTranslation } from '../../../protocol/index.ts';
import { METHODS, type Method, type MethodName } from '../../../protocol/service/index.ts';
import { callChecked, hasMethod } from '../../checked-calls.ts';
import {
  type EndpointHandler,
  limit,
  limitList,
  limitTrajectories,
  queryOf,
  type RequestContext,
  unsupported,
} from './context.ts';
import { answerCounted } from './counted-answer.ts';
import { requireModelAndAdapters } from './model-access.ts';
import { renameOldFields, renameOldSettings } from './old-names.ts';
import { answerResponse } from './stream-response.ts';

/** Further checks of the body of a method, in addition to its schema. */
type BodyRule = {
  /** Runs on the body before it is checked. */
  readonly before?: (body: unknown, context: RequestContext) => void;
  /** Runs on the checked request. */
  readonly after?: (request: never, context: RequestContext) => void;
  /** Field with another request, whose models and adapters are checked, too. */
  readonly inner?: string;
};

const CHAT: BodyRule = {
  before(body, { settings }) {
    renameOldFields(body);
    limitList(body, 'messages', settings.maxMessages);
  },
};

/** Tokens of an answer, and the chat request that they answer. */
const PARSED: BodyRule = {
  before(body, { settings }) {
    const { generate_response: answer, [CHAT_FIELD]: chat } = (body ?? {}) as Readonly<
      Record<string, unknown>
    >;
    limitList(answer, 'choices', settings.maxChoices, 'generate_response.choices');
    new PathTranslation({}, CHAT_FIELD).runNow(() => renameOldFields(chat));
    limitList(chat, 'messages', settings.maxMessages, `${CHAT_FIELD}.messages`);
  },
  inner: CHAT_FIELD,
};

/** Limits the lists of texts in these fields. */
function inputs(...fields: readonly string[]): BodyRule {
  return {
    before(body, { settings }) {
      for (const field of fields) if (!hasTokens(body, field)) limitList(body, field, settings.maxInputs);
    },
  };
}

const BODIES: { readonly [Name in MethodName]?: BodyRule } = {
  createCompletion: CHAT,
  renderPrompt: CHAT,
  parseAnswer: PARSED,
  createTextCompletion: {
    before: renameOldFields,
    after(request: { prompt: unknown; n?: number | null; best_of?: number | null }, { settings }) {
      const { prompt, n, best_of } = request;
      const prompts = Array.isArray(prompt) && typeof prompt[0] !== 'number' ? prompt.length : 1;
      limit('prompt', prompts * (best_of ?? n ?? 1), settings.maxChoices);
    },
  },
  createEmbeddings: inputs('input'),
  rerank: inputs('documents'),
  score: inputs('text_1', 'text_2'),
  classify: inputs('input'),
  decide: {
    after({ questions, orders }: DecisionRequest, { settings }) {
      const prompts = Object.values(questions).map((one) => (one.type === 'choice' ? (orders ?? 1) : 1));
      limit(
        'questions',
        prompts.reduce((sum, count) => sum + count, 0),
        settings.maxInputs,
      );
    },
  },
  'models.log': { before: limitTrajectories },
  train: {
    before(body, context) {
      limitTrajectories(body, context);
      renameOldSettings(body);
    },
  },
};

/** Checks the body of a request, and that its token may use the models and adapters in it. */
export async function readBody(name: MethodName, body: unknown, context: RequestContext): Promise<object> {
  const { check }: Method = METHODS[name];
  const { settings, validation } = context;
  const { before, after, inner }: BodyRule = BODIES[name] ?? {};
  before?.(body, context);
  const { maxLogprobs, maxChoices } = settings;
  const request = check!(body, { ...validation, maxLogprobs, maxChoices });
  after?.(request as never, context);
  await requireModelAndAdapters(context, request);
  const { [inner ?? '']: within } = request as Readonly<Record<string, object | null | undefined>>;
  if (within) await new PathTranslation({}, inner).run(() => requireModelAndAdapters(context, within));
  return request;
}

/** Checks the request and calls the method. */
export async function checkAndCall(name: MethodName, context: RequestContext): Promise<unknown> {
  const { ask, request } = await readCall(name, context);
  return await ask(request);
}

/** Creates an endpoint that answers with the result of a method, or with a stream of it. */
export function methodEndpoint(name: MethodName): EndpointHandler {
  const { Stream }: Method = METHODS[name];
  return async (context) => {
    const { ask, request } = await readCall(name, context);
    if (Stream) return await answerCounted(request!, context, ask);
    return answerResponse(await ask(request), context);
  };
}

/** Reads the arguments of a method and returns how to call it. */
async function readCall(name: MethodName, context: RequestContext) {
  const { args, check, http, what }: Method = METHODS[name];
  const { id, call, service, validation } = context;
  let request: object | null = null;
  if (check && http![0] === 'GET') request = check(queryOf(context), validation);
  else if (check) request = await readBody(name, await context.body(), context);
  if (!hasMethod(service, name)) throw unsupported(what);
  const ask = async (given: object | null): Promise<object> => {
    const first = args[0] === 'id' ? [id] : [];
    const answer = await callChecked(service, name, ...first, ...(given ? [given] : []), call);
    return context.streams.keep(answer as object, call.clientKey);
  };
  return { ask, request };
}

/** Returns true if a field is one text, given as a list of token ids. */
function hasTokens(body: unknown, field: string): boolean {
  const { [field]: list } = (body ?? {}) as Readonly<Record<string, unknown>>;
  return Array.isArray(list) && typeof list[0] === 'number';
}
