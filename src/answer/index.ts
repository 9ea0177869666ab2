/** A checked request on a loaded model -> its answer, whole or as a stream of chunks. */
export { type AnswerContext, answer } from './answer.ts';
export { conversationTokenizer } from './conversation-tokens.ts';
export { decide } from './decide/decide.ts';
export { decisionEntries } from './decide/decision-entries.ts';
export { type Calibration, formLogits, logSumExp, probabilitiesOf, rotation } from './decide/numbers.ts';
export { embed } from './embed.ts';
export { parseAnswer } from './parse-answer.ts';
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
export { answerText } from './text-completion/answer-text.ts';
export type { StopRules } from './text-out.ts';
export { beginTrace } from './trace.ts';
