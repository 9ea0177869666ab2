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

/** How a request arrived, and the limits of the runtime that checks it. */
export type ChatRequestOptions = Partial<ChatRuleOptions> & ValidationOptions;

/** Allows everything. A runtime applies its own limits in {@link admitChatRequest}. */
const NO_LIMITS: ChatRuleOptions = {
  maxLogprobs: null,
  maxChoices: null,
  scheduling: 'priority',
  allowRequestTemplate: true,
};

const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;

/** Checks and normalizes a request. Throws `INVALID_REQUEST` with all faults. */
export function checkAndAdmitChat(input: unknown, options: ChatRequestOptions = {}): ValidChatRequest {
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

/** Checks a request that was made of a checked one, so that its schema holds: rules alone. Throws `INVALID_REQUEST` with all faults. */
export function checkTranslatedChat(request: ChatCompletionRequest): Checked<ChatCompletionRequest> {
  return readingInput(request, () => {
    throwFaults(withRuleFaults(request, [], {}));
    return request as Checked<ChatCompletionRequest>;
  });
}

/**
 * Normalizes a checked request, after checking it against the limits of this runtime. Throws `INVALID_REQUEST` with all
 * faults.
 */
export function admitChatRequest(
  request: Checked<ChatCompletionRequest>,
  limits: Partial<ChatRuleOptions>,
): ValidChatRequest {
  const settings = { ...NO_LIMITS, ...limits };
  if (!keepsRules(limitsOf, request, settings))
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

/** Returns the faults that the schema finds. Throws `INVALID_REQUEST` at once if there are more than one error lists. */
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

/** Adds the faults that rules find. Skips rules that read a faulty field: they would only repeat its fault. */
export function withRuleFaults(
  request: ChatCompletionRequest,
  own: readonly ErrorDetail[],
  options: ChatRequestOptions,
): readonly ErrorDetail[] {
  const settings = { ...NO_LIMITS, ...options };
  if (own.length === 0 && keepsRules(rulesOf, request, settings)) return own;
  const faulty = new Set(own.map(({ loc }) => loc[0]));
  let faults = own;
  for (const { reads, check } of chatRules) {
    if (faulty.size > 0 && reads.some((field) => faulty.has(field))) continue;
    const found = check(request, settings);
    if (found) faults = faults.concat(found);
  }
  return faults;
}

/** Rules by the first field that they read. A rule finds nothing if a request lacks that field. */
type RulesByField = ReadonlyMap<string, readonly ChatRule[]>;

function byField(rules: readonly ChatRule[]): RulesByField {
  const fields = [...new Set(rules.map(({ reads: [first] }) => first))];
  return new Map(fields.map((field) => [field, rules.filter(({ reads }) => reads[0] === field)]));
}

/** The rules about what one runtime allows. */
const limitRules = chatRules.filter(({ isLimit }) => isLimit);
const rulesOf = byField(chatRules);
const limitsOf = byField(limitRules);

/** Returns true if no rule finds a fault. Runs only the rules of fields that are present, so that most requests pass quickly. */
function keepsRules(rules: RulesByField, request: ChatCompletionRequest, settings: ChatRuleOptions): boolean {
  if (Object.getPrototypeOf(request) !== Object.prototype) return false; // keys do not include getters of a class
  for (const field of Object.keys(request))
    for (const { check } of rules.get(field) ?? []) {
      const found = check(request, settings);
      if (found && !(Array.isArray(found) && found.length === 0)) return false;
    }
  return true;
}

/** Replaces values that JSON lacks by values that the schema accepts: functions by names, a bigint by a number, bytes by a URI. */
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
