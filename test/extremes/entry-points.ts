/** Every entry point of the library -> what it says of an input: refused as it should be, taken, or a fault of the entry. */
import { OnpolicyError } from '../../src/errors.ts';
import {
  checkAndAdmitChat,
  checkCallOptions,
  checkChatRequest,
  checkDetokenizeRequest,
  checkEmbeddingRequest,
  checkListQuery,
  checkLogRequest,
  checkModelCreateRequest,
  checkOf,
  checkRequest,
  checkScoreRequest,
  checkSftRequest,
  checkTextCompletionRequest,
  checkTokenizeRequest,
  checkTrainingJobRequest,
  checkVocabulary,
  toValidClassify,
  toValidEmbedding,
  toValidRerank,
  toValidScore,
  type ValidationOptions,
} from '../../src/protocol/index.ts';
import { checkOptions } from '../../src/runtime/options.ts';
import { connect, createHandler, createPool } from '../../src/serve/http/index.ts';
import { checkServeOptions } from '../../src/serve/http/server/serve.ts';
import { toChat } from '../../src/serve/wires/messages/to-chat.ts';
import { type ResolvedRequest, toChat as responseToChat } from '../../src/serve/wires/responses/to-chat.ts';
import { createMemoryService } from '../fakes/memory-service.ts';
import { validText } from '../protocol/request.ts';
import type { Draw, Form } from './draws.ts';
import * as forms from './forms.ts';
import * as options from './option-forms.ts';

/** An entry point, and inputs to vary for it. */
export type EntryPoint = {
  readonly name: string;
  readonly form: Form;
  readonly check: (input: object) => unknown;
  /** It takes what comes out of JSON. */
  readonly isWire?: true;
};

const WIRE = { wire: true } as const;
const service = createMemoryService();

/** The whole entry point of the messages API: its own schema, and that of the chat completion. */
function checkMessage(input: object, validation: ValidationOptions): void {
  const { chat, paths } = toChat(checkRequest('MessageRequest', input, validation));
  paths.runNow(() => checkAndAdmitChat(chat));
}

/** The whole entry point of the responses API. */
function checkResponse(input: object, validation: ValidationOptions): void {
  const { chat, paths } = responseToChat(
    checkRequest('ResponseRequest', input, validation) as ResolvedRequest,
    [],
  );
  paths.runNow(() => checkAndAdmitChat(chat));
}

/** All of them. */
export const ENTRY_POINTS: readonly EntryPoint[] = [
  {
    name: 'completion',
    form: forms.COMPLETION,
    check: (input) => checkVocabulary(checkAndAdmitChat(input), 512),
  },
  {
    name: 'completion over HTTP',
    form: forms.COMPLETION,
    check: (input) => checkChatRequest(input, { ...WIRE, maxLogprobs: 20, maxChoices: 128 }),
    isWire: true,
  },
  { name: 'text completion', form: forms.TEXT, check: (input) => validText(input) },
  {
    name: 'text completion over HTTP',
    form: forms.TEXT,
    check: (input) => checkTextCompletionRequest(input, { ...WIRE, maxLogprobs: 20, maxChoices: 128 }),
    isWire: true,
  },
  { name: 'message', form: forms.MESSAGE, check: (input) => checkMessage(input, {}) },
  {
    name: 'message over HTTP',
    form: forms.MESSAGE,
    check: (input) => checkMessage(input, WIRE),
    isWire: true,
  },
  { name: 'response', form: forms.RESPONSE, check: (input) => checkResponse(input, {}) },
  {
    name: 'response over HTTP',
    form: forms.RESPONSE,
    check: (input) => checkResponse(input, WIRE),
    isWire: true,
  },
  { name: 'train', form: forms.TRAINING, check: (input) => checkTrainingJobRequest(input) },
  {
    name: 'train over HTTP',
    form: forms.TRAINING,
    check: (input) => checkTrainingJobRequest(input, WIRE),
    isWire: true,
  },
  { name: 'sft', form: forms.SFT, check: checkSftRequest },
  { name: 'log', form: forms.LOG, check: (input) => checkLogRequest(input) },
  {
    name: 'log over HTTP',
    form: forms.LOG,
    check: (input) => checkLogRequest(input, WIRE),
    isWire: true,
  },
  { name: 'models.create', form: forms.MODEL, check: (input) => checkModelCreateRequest(input) },
  { name: 'list', form: forms.LIST, check: (input) => checkListQuery(input) },
  {
    name: 'checkpoints.delete',
    form: forms.DELETION,
    check: (input) => checkOf('CheckpointDeleteRequest')(input),
  },
  {
    name: 'tokenize',
    form: forms.TOKENIZE,
    check: (input) => {
      const { text, ...options } = input as { text: unknown };
      return checkTokenizeRequest(text, options);
    },
  },
  {
    name: 'detokenize',
    form: forms.DETOKENIZE,
    check: (input) => {
      const { ids, ...options } = input as { ids: unknown };
      return checkDetokenizeRequest(ids, options);
    },
  },
  {
    name: 'embeddings',
    form: forms.EMBEDDING,
    check: (input) => toValidEmbedding(checkEmbeddingRequest(input)),
  },
  {
    name: 'a ranking',
    form: forms.RERANK,
    check: (input) => toValidRerank(checkOf('RerankRequest')(input)),
  },
  {
    name: 'scores of pairs',
    form: forms.SCORE,
    check: (input) => toValidScore(checkScoreRequest(input)),
  },
  {
    name: 'labels',
    form: forms.CLASSIFY,
    check: (input) => toValidClassify(checkOf('ClassifyRequest')(input)),
  },
  {
    name: 'an adapter with a name',
    form: forms.ADAPTER_LOAD,
    check: (input) => checkRequest('AdapterLoadRequest', input, {}),
  },
  {
    name: 'tokenize over HTTP',
    form: forms.TOKENIZE_BODY,
    check: (input) => checkRequest('TokenizeBody', input, WIRE),
    isWire: true,
  },
  {
    name: 'detokenize over HTTP',
    form: forms.DETOKENIZE_BODY,
    check: (input) => checkRequest('DetokenizeBody', input, WIRE),
    isWire: true,
  },
  { name: 'options of a call', form: options.CALL, check: checkCallOptions },
  { name: 'options of a runtime', form: options.RUNTIME, check: (input) => checkOptions(input as never) },
  {
    name: 'options of a handler',
    form: options.HANDLER,
    check: (input) => createHandler(service, input as never),
  },
  {
    name: 'options of a server',
    form: options.SERVER,
    check: (input) => checkServeOptions(input as never),
  },
  { name: 'options of a client', form: options.CLIENT, check: (input) => connect(input as never).close() },
  { name: 'options of a pool', form: options.POOL, check: (input) => createPool([service], input as never) },
];

/** The result of passing a draw to an entry point. `problem` describes forbidden behaviour. */
export type Verdict = { readonly isTaken: boolean; readonly problem: string | null };

/** Passes a draw to an entry point. */
export function judge(entry: EntryPoint, { input }: Draw): Verdict {
  const given = entry.isWire ? (JSON.parse(JSON.stringify(input)) as object) : (input as object);
  try {
    entry.check(given);
    return { isTaken: true, problem: null };
  } catch (error) {
    return { isTaken: false, problem: problemOf(error) };
  }
}

/** Returns the problem with an error, or null. It must be an OnpolicyError, blame the caller and name the place. */
export function problemOf(error: unknown): string | null {
  if (!(error instanceof OnpolicyError)) return `threw ${inText(error)}`;
  const { param, detail, status, code, message } = error;
  const isPlaced = param
    ? true
    : detail !== undefined && detail.length > 1 && detail.every(({ loc }) => loc.length > 0);
  if (status >= 500) return `was a failure of its own: ${code} ${message.slice(0, 200)}`;
  if (!isPlaced) return `named no field: ${code} ${message.slice(0, 200)}`;
  return message.length > 1000 ? `said ${message.length} characters` : null;
}

function inText(thrown: unknown): string {
  try {
    return thrown instanceof Error ? `${thrown.name}: ${thrown.message.slice(0, 200)}` : String(thrown);
  } catch {
    return 'what cannot be shown';
  }
}
