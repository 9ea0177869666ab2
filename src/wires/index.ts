/** Requests of other APIs -> requests of the one engine, and its answers back in their form. */

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
  type ResponseStream,
  type ResponsesResource,
  responsesOf,
} from './responses/create-response.ts';
export { answerText } from './text-completion/answer-text.ts';
export { transcribe } from './transcription/transcribe.ts';
export {
  CODE_HEADER,
  type ErrorForm,
  fromErrorBody,
  fromWireError,
  STREAM_END,
  toErrorBody,
  toWireError,
  type WireError,
} from './wire-errors.ts';
