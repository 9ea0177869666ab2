/** The wire: request types and the door that checks them, response types. */

export {
  type ChatRequestOptions,
  checkChatRequest,
  checkVocabulary,
  validateChatRequest,
} from './chat-completion.ts';
export type * from './chat-completion-response.ts';
export type { LogitsProcessor } from './logits-processor.ts';
export {
  type ValidListQuery,
  type ValidModelCreateRequest,
  validateCheckpointDeleteRequest,
  validateListQuery,
  validateModelCreateRequest,
} from './model.ts';
export type * from './request-types.ts';
export type * from './resources.ts';
export { type DoorOptions, validateLogRequest, validateTrainingJobRequest } from './training-job.ts';
export type * from './valid-chat-request.ts';
export { dropUnknownFields } from './validate.ts';
