/** Validation of tokens to be read as an answer: any input -> the tokens, and the chat request that says how they are read. */
import { isObject } from '../common/index.ts';
import type { ErrorDetail } from '../errors.ts';
import { admitChatRequest, type ChatRequestOptions, checkChatRequest } from './chat-completion.ts';
import type { Checked } from './checked.ts';
import { fault, itemFaults, throwFaults } from './faults.ts';
import type {
  ChatCompletionRequest,
  GeneratedTokens,
  ParseAnswerRequest,
} from './generated/request-types.ts';
import { PathTranslation } from './path-translation.ts';
import { withJsonSchemas } from './standard-schema.ts';
import type { ValidChatRequest } from './valid-chat-request.ts';
import { checkRequest, readingInput } from './validate.ts';

export type ValidParseAnswer = {
  /** The tokens. */
  readonly answer: GeneratedTokens;
  /** Chat request that says how the tokens are read, and by which model. */
  readonly chat: ValidChatRequest;
  /** False if no chat request was given, so that all text is content. */
  readonly hasChat: boolean;
  /** Tokens of the prompt as the caller counted them, or null. */
  readonly promptTokens: number | null;
  /** The caller's names of the fields of `chat`. */
  readonly paths: PathTranslation;
};

/** Field with the chat request. */
export const CHAT_FIELD = 'chat_request';

/** Checks a request. Throws `INVALID_REQUEST` with all faults. */
export function checkParseAnswerRequest(
  input: unknown,
  options: ChatRequestOptions = {},
): Checked<ParseAnswerRequest> {
  return readingInput(input, () => {
    const request = checkRequest('ParseAnswerRequest', input, options) as Checked<ParseAnswerRequest>;
    throwFaults(scoreFaults(request.generate_response));
    const { chat_request: chat } = request;
    const { onDropped } = options;
    const drops = onDropped ? { onDropped: (path: string) => onDropped(`${CHAT_FIELD}.${path}`) } : {};
    if (chat) inChat.runNow(() => checkChatRequest(chat, { ...options, ...drops }));
    return request;
  });
}

/** Paths of the chat request, as fields of the whole one. */
const inChat = new PathTranslation({}, CHAT_FIELD);

/** Returns a fault for each list of log-probabilities that are not those of the tokens. */
function scoreFaults({ choices }: GeneratedTokens): ErrorDetail[] {
  return choices.flatMap(({ token_ids: ids, logprobs }, i) => {
    if (!logprobs) return [];
    const { content } = logprobs;
    const loc = ['generate_response', 'choices', String(i), 'logprobs', 'content'];
    if (content.length !== ids.length)
      return [fault(loc, 'length', `${ids.length} items, one for each token`, content)];
    const places = [...content.keys()];
    return itemFaults(
      places,
      (at) => content[at]!.token_id !== ids[at],
      (at) =>
        fault(
          [...loc, String(at), 'token_id'],
          'value',
          `${ids[at]}, the token at this place`,
          content[at]!.token_id,
        ),
    );
  });
}

/** Replaces schemas of other libraries in the chat request. */
export function withChatSchemas<Request>(request: Request): Request {
  if (!isObject(request)) return request;
  const { chat_request: chat } = request as { readonly chat_request?: unknown };
  const made = inChat.runNow(() => withJsonSchemas(chat));
  return made === chat ? request : { ...request, chat_request: made };
}

/** Normalizes a checked request. Throws `INVALID_REQUEST` for what this runtime does not allow. */
export function admitParseAnswerRequest(
  request: Checked<ParseAnswerRequest>,
  limits: ChatRequestOptions,
): ValidParseAnswer {
  const { generate_response: answer, chat_request: given, model, prompt_tokens } = request;
  const own = { generate_response: 'generate_response', ...(model ? { model: 'model' } : {}) };
  const asked = (given ?? { messages: [] }) as Checked<ChatCompletionRequest>;
  const chat = inChat.runNow(() => admitChatRequest(asked, limits));
  return {
    answer,
    chat: Object.assign(chat, model ? { model } : {}),
    hasChat: given != null,
    promptTokens: prompt_tokens ?? null,
    paths: new PathTranslation(own, given ? CHAT_FIELD : ''),
  };
}
