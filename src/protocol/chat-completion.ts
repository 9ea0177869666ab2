/** Validation of chat completion requests: any input -> a valid request, or one error that lists every fault. */
import { isObject } from '../common/index.ts';
import type { ErrorDetail } from '../errors.ts';
import type { Checked } from './checked.ts';
import { fault, invalidRequest, throwFaults } from './faults.ts';
import type { ChatCompletionRequest } from './generated/request-types.ts';
import { replaceBytes } from './media-bytes.ts';
import { normalizeChatRequest } from './normalize-chat-request.ts';
import { chatRules } from './rules/index.ts';
import type { ChatRule, ChatRuleOptions } from './rules/rule.ts';
import { tokenIdFaults, vocabularyFaults } from './rules/vocabulary.ts';
import type { ValidChatRequest } from './valid-chat-request.ts';
import { readingInput, schemaFaults, unknownFields, type ValidationOptions } from './validate.ts';

/** How a request came, and what its receiver allows. */
export type ChatRequestOptions = Partial<ChatRuleOptions> & ValidationOptions;

/** Everything: a runtime applies its own limits in {@link admitChatRequest}. */
const NO_LIMITS: ChatRuleOptions = {
  maxLogprobs: null,
  maxChoices: null,
  scheduling: 'priority',
  allowRequestTemplate: true,
};

const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;

/** Checks a request and brings it into its one form. Throws `INVALID_REQUEST` with all faults. */
export function validateChatRequest(input: unknown, options: ChatRequestOptions = {}): ValidChatRequest {
  return readingInput(input, () => normalizeChatRequest(checkChatRequest(input, options)));
}

/** Checks a request. Throws `INVALID_REQUEST` with all faults. */
export function checkChatRequest(
  input: unknown,
  options: ChatRequestOptions = {},
): Checked<ChatCompletionRequest> {
  return readingInput(input, () => {
    const own = fieldFaults('ChatCompletionRequest', input, options);
    throwFaults(
      isObject(input) ? withRuleFaults(input as object as ChatCompletionRequest, own, options) : own,
    );
    return input as Checked<ChatCompletionRequest>;
  });
}

/**
 * Brings a checked request into its one form. All that is left to check is what this runtime allows. Throws
 * `INVALID_REQUEST` with all faults.
 */
export function admitChatRequest(
  request: Checked<ChatCompletionRequest>,
  limits: Partial<ChatRuleOptions>,
): ValidChatRequest {
  const settings = { ...NO_LIMITS, ...limits };
  throwFaults(limitRules.flatMap(({ check }) => check(request, settings) ?? []));
  return normalizeChatRequest(request);
}

/** Checks that a tokenizer has these ids. Throws `INVALID_REQUEST`. */
export function checkTokenIds(ids: readonly number[], vocabSize: number): void {
  throwFaults(tokenIdFaults(['ids'], ids, vocabSize));
}

/** Checks the token ids of a request that was validated before its model was known. Throws `INVALID_REQUEST`. */
export function checkVocabulary(request: ValidChatRequest, vocabSize: number): void {
  throwFaults(vocabularyFaults(request, vocabSize));
}

/** What the schema finds. Throws all of it where that is more than one error lists. */
export function fieldFaults(
  name: 'ChatCompletionRequest' | 'TextCompletionRequest',
  input: unknown,
  options: ChatRequestOptions,
): readonly ErrorDetail[] {
  const inProcess = options.wire ? [] : inProcessFaults(input);
  const plain = options.wire ? input : withoutInProcessValues(input);
  const found = schemaFaults(name, plain, unknownFields(options), options.onDropped);
  if (found.count > found.listed.length) throw invalidRequest(found);
  return [...inProcess, ...found.listed];
}

/** Adds the faults that rules find. A rule that reads a faulty field is left out: it could not tell anything new. */
export function withRuleFaults(
  request: ChatCompletionRequest,
  own: readonly ErrorDetail[],
  options: ChatRequestOptions,
): readonly ErrorDetail[] {
  const settings = { ...NO_LIMITS, ...options };
  if (own.length === 0 && keepsRules(request, settings)) return own;
  const faulty = new Set(own.map(({ loc }) => loc[0]));
  let faults = own;
  for (const { reads, check } of chatRules) {
    if (faulty.size > 0 && reads.some((field) => faulty.has(field))) continue;
    const found = check(request, settings);
    if (found) faults = faults.concat(found);
  }
  return faults;
}

/** Rules by the field without which they find nothing. */
const rulesOf = new Map<string, ChatRule[]>();
for (const rule of chatRules) rulesOf.set(rule.reads[0], [...(rulesOf.get(rule.reads[0]) ?? []), rule]);

/** Whether no rule of a given field finds anything. Asks few rules, so that most requests are done with soon. */
function keepsRules(request: ChatCompletionRequest, settings: ChatRuleOptions): boolean {
  if (Object.getPrototypeOf(request) !== Object.prototype) return false; // getters of a class are no keys
  for (const field of Object.keys(request))
    for (const { check } of rulesOf.get(field) ?? []) {
      const found = check(request, settings);
      if (found && !(Array.isArray(found) && found.length === 0)) return false;
    }
  return true;
}

/** The rules about what one runtime allows. */
const limitRules = chatRules.filter(({ isLimit }) => isLimit);

/** Replaces values that JSON does not have by those of the schema: functions by names, a bigint by a number, bytes by a URI. */
function withoutInProcessValues(input: unknown): unknown {
  if (!isObject(input)) return input;
  const { seed, logits_processors: processors } = input;
  const messages = replaceBytes(input['messages'], () => 'data:,');
  const hasFunctions = Array.isArray(processors) && processors.some((item) => typeof item === 'function');
  if (typeof seed !== 'bigint' && !hasFunctions && messages === input['messages']) return input;
  return {
    ...input,
    ...(messages === input['messages'] ? {} : { messages }),
    ...(typeof seed === 'bigint' ? { seed: 0 } : {}),
    ...(hasFunctions
      ? {
          logits_processors: processors.map((item: unknown) =>
            typeof item === 'function' ? 'function' : item,
          ),
        }
      : {}),
  };
}

function inProcessFaults(input: unknown): ErrorDetail[] {
  const seed = isObject(input) ? input['seed'] : null;
  if (typeof seed !== 'bigint' || (seed >= INT64_MIN && seed <= INT64_MAX)) return [];
  return [fault(['seed'], 'range', `an integer from ${INT64_MIN} to ${INT64_MAX}`, seed)];
}
