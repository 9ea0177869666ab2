/** Requests of other APIs -> requests of this library, and its answers in the form of those APIs. */

export {
  samplingParamsOf,
  toGenerated,
  toGeneratedChunk,
  toTextCompletion,
  toTextRequest,
} from './generate.ts';
export { fromInfill, toInfill, toInfillParts } from './infill.ts';
export {
  type CreateMessage,
  countMessageTokens,
  createMessage,
  MessageStream,
} from './messages/create-message.ts';
export { answerChat, answerPrompt, embedTexts, wholeOf } from './ollama/answer.ts';
export { toSeconds } from './ollama/to-request.ts';
export {
  type OfBody,
  ResponseStream,
  type ResponsesResource,
  responsesOf,
} from './responses/create-response.ts';
export { answerSystemOne, checkSystemOne, isSystemOne } from './systemone/answer.ts';
export { readSamplerId, samplerId } from './tinker/paths.ts';
export { openData, readData } from './tinker/read-data.ts';
export { type Tinker, type TinkerCaller, tinkerOf } from './tinker/tinker.ts';
export { toSamples } from './tinker/to-samples.ts';
export { transcribe } from './transcription/transcribe.ts';
