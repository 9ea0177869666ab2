/** Questions that the tests of decisions ask, and the numbers of their answers. */
import type { DecisionAnswer, DecisionQuestion } from '../../../src/protocol/index.ts';
import type { Metadata } from '../../rl/tiny-model.ts';

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

const letters = Array.from({ length: 26 }, (_, i) => String.fromCharCode(65 + i));
const merges = [
  ...letters.flatMap((a) => letters.map((b) => `${a} ${b}`)),
  ...letters.map((letter) => `Ġ ${letter}`),
  ...['y e', 'ye s', 'Y e', 'Ye s', 'YE S', 'n o', 'N o', '0 0', '0 1'],
];

/** A vocabulary of single bytes and of what the merges make of them. */
function vocabularyOf(merges: readonly string[]): {
  readonly vocabularySize: number;
  readonly tokenizer: Metadata;
} {
  const tokens = [
    ...Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i)),
    ...['Ġ', 'Ċ', ...merges.map((merge) => merge.replace(' ', '')), '<s>', '</s>'],
  ];
  return {
    vocabularySize: tokens.length,
    tokenizer: [
      ['tokenizer.ggml.model', 'gpt2'],
      ['tokenizer.ggml.pre', 'gpt-2'],
      ['tokenizer.ggml.tokens', tokens],
      ['tokenizer.ggml.token_type', Int32Array.from(tokens, (token) => (/^<\/?s>$/.test(token) ? 3 : 1))],
      ['tokenizer.ggml.merges', [...merges]],
      ['tokenizer.ggml.bos_token_id', tokens.length - 2],
      ['tokenizer.ggml.eos_token_id', tokens.length - 1],
    ],
  };
}
/** All codes of two letters and the words yes and no are tokens. */
export const CODES = vocabularyOf(merges);
/** No word is a token. */
export const BYTES = vocabularyOf(['! "']);
