/** A checked request on a loaded model -> its answer, whole or as a stream of chunks. */
export { answer } from './answer.ts';
export { renderMessages } from './prompt.ts';
export { renderPrompt } from './render-prompt.ts';
export { ChatCompletionStream } from './stream.ts';
export type { StopRules } from './text-out.ts';
