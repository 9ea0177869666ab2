/** A checked request on a loaded model -> its answer, whole or as a stream of chunks. */
export { type AnswerContext, answer } from './answer.ts';
export { answerPrompts } from './answer-prompts.ts';
export { embed } from './embed.ts';
export type { TokenPrompt } from './prompt.ts';
export { renderMessages } from './prompt.ts';
export {
  classify,
  judgePairs,
  type PairScores,
  scorePairs,
  toJudgeRequest,
  toRerankResponse,
  toScoreResponse,
} from './rank.ts';
export { renderPrompt } from './render-prompt.ts';
export {
  AnswerStream,
  ChatCompletionStream,
  type ScoredChunk,
  TextCompletionStream,
  TranscriptionStream,
} from './stream.ts';
export type { StopRules } from './text-out.ts';
export { beginTrace } from './trace.ts';
