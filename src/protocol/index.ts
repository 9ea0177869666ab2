/** The wire: request types and their validation, response types. */

export { checkCallOptions, isTraceId } from './call-options.ts';
export {
  admitChatRequest,
  type ChatRequestOptions,
  checkChatRequest,
  checkTokenIds,
  checkVocabulary,
  validateChatRequest,
} from './chat-completion.ts';
export type { Checked, CheckedLogRequest } from './checked.ts';
export { checkEmbeddingRequest, toValidEmbedding, type ValidEmbeddingRequest } from './embedding.ts';
export { closestName, describe, fault, invalidRequest, throwFaults } from './faults.ts';
export { fileText } from './file-text.ts';
export type * from './generated/argument-types.ts';
export { fileBytes, type Pixels, replaceBytes, toDataUri } from './media-bytes.ts';
export {
  type ValidJobListQuery,
  type ValidListQuery,
  type ValidModelCreateRequest,
  validateDetokenizeRequest,
  validateJobListQuery,
  validateListQuery,
  validateModelCreateRequest,
  validateModelExport,
  validateTokenizeRequest,
} from './model.ts';
export { toKeepAlive, toSpeculation } from './normalize-chat-request.ts';
export { CUSTOM_INPUT, givenTools } from './normalize-tools.ts';
export { PathTranslation } from './path-translation.ts';
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
export { faultOfSpeculation } from './rules/sampling.ts';
export { type ConstraintKind, givenConstraints } from './rules/structured.ts';
export { settingFaults } from './rules/training-settings.ts';
export { tokenIdFaults } from './rules/vocabulary.ts';
export { EXTRA_FIELDS } from './schemas/messages.ts';
export { SAME_OPTIONS } from './schemas/ollama.ts';
export {
  admitTextCompletionRequest,
  checkTextCompletionRequest,
  type GivenPrompt,
  type ValidTextCompletionRequest,
} from './text-completion.ts';
export { RUN_OPERATIONS, type RunOperation, type RunRequest } from './training-run.ts';
export {
  checkSftRequest,
  validateLogRequest,
  validateTrainingJobRequest,
} from './trajectory-requests.ts';
export type * from './valid-chat-request.ts';
export {
  type Complete,
  checkArguments,
  checkOf,
  checkRequest,
  readingInput,
  type ValidationOptions,
  withDefaults,
} from './validate.ts';
