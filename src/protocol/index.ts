/** The wire: request types and the door that checks them, response types. */

export {
  admitChatRequest,
  type ChatRequestOptions,
  checkChatRequest,
  checkVocabulary,
  validateChatRequest,
} from './chat-completion.ts';
export { type AfterDoor, afterDoor, type Checked, hasKnownDoor, splitAtDoor } from './checked.ts';
export { closestName, fault, throwFaults } from './faults.ts';
export {
  type ValidListQuery,
  type ValidModelCreateRequest,
  validateCheckpointDeleteRequest,
  validateListQuery,
  validateModelCreateRequest,
} from './model.ts';
export type * from './public.ts';
export { validateLogRequest, validateTrainingJobRequest } from './trajectory-requests.ts';
export type * from './valid-chat-request.ts';
export type { DoorOptions } from './validate.ts';
