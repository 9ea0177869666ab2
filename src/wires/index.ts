/** Requests of other APIs -> requests of the one engine, and its answers back in their form. */
export { answerText } from './text-completion/answer-text.ts';
