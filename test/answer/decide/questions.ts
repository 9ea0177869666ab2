/** Questions that the tests of decisions ask, and the numbers of their answers. */
import type { DecisionAnswer, DecisionQuestion } from '../../../src/protocol/index.ts';

export const choices = (count: number) => Array.from({ length: count }, (_, i) => ({ value: `option ${i}` }));
export const levels = (count: number) => Array.from({ length: count }, (_, i) => ({ label: `level ${i}` }));
export const TICKET = 'The invoice of May was paid twice. Please send the money back today!';
/** One of each kind, and of each form. */
export const QUESTIONS = {
  urgent: { type: 'predicate', instructions: 'Does the customer need a reply today?' },
  stated: {
    type: 'predicate',
    instructions: 'It is about money.',
    criteria: { true: 'yes, money', false: 'no' },
  },
  team: { type: 'choice', instructions: 'Which team?', choices: [...choices(2), { value: true }] },
  anger: { type: 'score', instructions: 'How angry?', levels: levels(3) },
} as const satisfies Record<string, DecisionQuestion>;

/** The numbers of an answer, in their order. */
export function numbersOf(answer: DecisionAnswer): number[] {
  return answer.type === 'predicate'
    ? [answer.probability, 1 - answer.probability]
    : answer.probabilities.map(({ probability }) => probability);
}
