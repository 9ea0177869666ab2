/** The wire: request types and the door that checks them, response types. */

export {
  type ChatRequestOptions,
  checkChatRequest,
  checkVocabulary,
  validateChatRequest,
} from './chat-completion.ts';
export { closestName, fault, throwFaults } from './faults.ts';
export {
  type ValidListQuery,
  type ValidModelCreateRequest,
  validateCheckpointDeleteRequest,
  validateListQuery,
  validateModelCreateRequest,
} from './model.ts';
export type * from './public.ts';
export { type DoorOptions, validateLogRequest, validateTrainingJobRequest } from './training-job.ts';
export type * from './valid-chat-request.ts';
export { dropUnknownFields } from './validate.ts';
