/** The wire: request types and their validation, response types. */

export { checkCallOptions, isTraceId } from './call-options.ts';
export {
  admitChatRequest,
  type ChatRequestOptions,
  checkAndAdmitChat,
  checkChatRequest,
  checkTokenIds,
  checkTranslatedChat,
  checkVocabulary,
} from './chat-completion.ts';
export type { Checked, CheckedLogRequest } from './checked.ts';
export {
  admitDecisionRequest,
  checkDecisionRequest,
  type DecisionKind,
  type ValidDecisionRequest,
  type ValidQuestion,
} from './decision.ts';
export { dataOf } from './decision-input.ts';
export { checkEmbeddingRequest, toValidEmbedding, type ValidEmbeddingRequest } from './embedding.ts';
export { closestName, fault, invalidRequest, throwFaults } from './faults.ts';
export { fileText } from './file-text.ts';
export type * from './generated/argument-types.ts';
export { type Pixels, replaceBytes, toDataUri } from './media-bytes.ts';
export { checkSize, inlineBytes, readSound, requireData } from './media-data.ts';
export {
  checkDetokenizeRequest,
  checkJobListQuery,
  checkListQuery,
  checkModelCreateRequest,
  checkModelExport,
  checkTokenizeRequest,
  type ValidJobListQuery,
  type ValidListQuery,
  type ValidModelCreateRequest,
} from './model.ts';
export { toKeepAlive, toSpeculation } from './normalize-chat-request.ts';
export { CUSTOM_INPUT, givenTools } from './normalize-tools.ts';
export {
  admitParseAnswerRequest,
  CHAT_FIELD,
  checkParseAnswerRequest,
  type ValidParseAnswer,
  withChatSchemas,
} from './parse-answer.ts';
export { PathTranslation } from './path-translation.ts';
export { checkPrefixCacheQuery } from './prefix-cache.ts';
export type * from './public.ts';
export {
  checkScoreRequest,
  type GivenText,
  type TextPair,
  toValidClassify,
  toValidRerank,
  toValidScore,
  type ValidClassifyRequest,
  type ValidPairs,
  type ValidRerankRequest,
} from './rank.ts';
export { routedExpertIds, toRoutedExperts } from './routed-experts.ts';
export { freeFormFault } from './rules/free-form.ts';
export { faultOfSpeculation } from './rules/sampling.ts';
export { type ConstraintKind, givenConstraints } from './rules/structured.ts';
export { settingFaults } from './rules/training-settings.ts';
export { tokenIdFaults } from './rules/vocabulary.ts';
export { BATCH_URLS } from './schemas/batch.ts';
export { EXTRA_FIELDS } from './schemas/chat-completion.ts';
export { MOST_CHOICES } from './schemas/decision.ts';
export { SAME_OPTIONS } from './schemas/ollama.ts';
export { LARGEST_LOGPROB } from './schemas/trajectory.ts';
export { readerOfRequest, schema, withJsonSchemas } from './standard-schema.ts';
export { sumUsage } from './sum-usage.ts';
export {
  admitTextCompletionRequest,
  checkTextCompletionRequest,
  type GivenPrompt,
  toPrompts,
  type ValidTextCompletionRequest,
} from './text-completion.ts';
export { RUN_OPERATIONS, type RunOperation, type RunRequest } from './training-run.ts';
export {
  checkLogRequest,
  checkSftRequest,
  checkTrainingJobRequest,
  withSplit,
} from './trajectory-requests.ts';
export type * from './valid-chat-request.ts';
export {
  type Complete,
  checkArguments,
  checkOf,
  checkRequest,
  type RequestName,
  readingInput,
  type ValidationOptions,
  withDefaults,
} from './validate.ts';
export {
  CODE_HEADER,
  type ErrorForm,
  EVENT_HEADERS,
  eventOf,
  failureEvents,
  fromErrorBody,
  fromWireError,
  IDLE_EVENT,
  SILENCE_MS,
  STREAM_END,
  toErrorBody,
  toWireError,
  type WireError,
} from './wire-errors.ts';
