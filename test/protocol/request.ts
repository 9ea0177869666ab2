/** Helpers of the protocol's tests: a small valid request, and the faults of one that is not. */
import type { ErrorDetail } from '../../src/errors.ts';
import { OnpolicyError } from '../../src/errors.ts';
import {
  admitTextCompletionRequest,
  type ChatRequestOptions,
  checkAndAdmitChat,
  checkTextCompletionRequest,
  checkVocabulary,
  type ValidChatRequest,
  type ValidTextCompletionRequest,
} from '../../src/protocol/index.ts';

/** A tool that requests may name. */
export const WEATHER = { type: 'function', function: { name: 'weather', parameters: { type: 'object' } } };

/** Default limits of a runtime. */
const LIMITS = { scheduling: 'fcfs' } as const;

/** Validates a request of one message with further fields. */
export function valid(fields: Record<string, unknown>, options: ChatRequestOptions = {}): ValidChatRequest {
  return checkAndAdmitChat(
    { messages: [{ role: 'user', content: 'Hi' }], ...fields },
    { ...LIMITS, ...options },
  );
}

/** Validates a text completion request, as a runtime does. */
export function validText(input: unknown, options: ChatRequestOptions = {}): ValidTextCompletionRequest {
  return admitTextCompletionRequest(checkTextCompletionRequest(input, options), options);
}

/** The faults of a request of one message with further fields. Empty when it is valid. */
export function faultsOf(
  fields: Record<string, unknown>,
  options: ChatRequestOptions = {},
): readonly ErrorDetail[] {
  return faultsOfInput({ messages: [{ role: 'user', content: 'Hi' }], ...fields }, options);
}

/** The faults of any input. */
export function faultsOfInput(input: unknown, options: ChatRequestOptions = {}): readonly ErrorDetail[] {
  return faultsIn(() => checkAndAdmitChat(input, { ...LIMITS, ...options }));
}

/** The messages of the faults that a model with so many tokens finds in a valid request. */
export function vocabularyFaultsOf(fields: Record<string, unknown>, vocabSize: number): string[] {
  return faultsIn(() => checkVocabulary(valid(fields), vocabSize)).map(({ msg }) => msg);
}

function faultsIn(check: () => unknown): readonly ErrorDetail[] {
  try {
    check();
    return [];
  } catch (error) {
    if (!(error instanceof OnpolicyError) || error.code !== 'INVALID_REQUEST') throw error;
    return error.detail ?? [];
  }
}

/** Their messages. */
export function messagesOf(fields: Record<string, unknown>, options: ChatRequestOptions = {}): string[] {
  return faultsOf(fields, options).map(({ msg }) => msg);
}
