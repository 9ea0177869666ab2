/** A question -> the words that ask it. Models are trained on these words: a change of them is a breaking change. */
import type { ValidQuestion } from '../../protocol/index.ts';
import type { PlacedPart } from '../arrange-messages.ts';

/** Labels of up to 26 options. More options have two-letter codes. */
export const LETTERS: readonly string[] = Array.from({ length: 26 }, (_, i) => String.fromCharCode(65 + i));

/** Codes from AA to ZZ. */
export const PAIRS: readonly string[] = LETTERS.flatMap((first) => LETTERS.map((second) => first + second));

/** Returns the line that asks for a label. It is the end of the question. */
export function lastLineOf(question: ValidQuestion): string {
  switch (question.type) {
    case 'predicate':
      return 'Answer yes or no.';
    case 'score':
      return 'Answer with the number of one level.';
    case 'choice': {
      const letters = question.choices.length > LETTERS.length ? 'letters' : 'letter';
      return `Answer with the ${letters} of one option.`;
    }
  }
}

/**
 * Returns a question as the last parts of a message. `labels` are those of the places of a choice; `order` is the index of the option at
 * each place.
 */
export function askQuestion(
  question: ValidQuestion,
  labels: readonly string[],
  order: readonly number[],
): readonly PlacedPart[] {
  const lastLine = lastLineOf(question);
  if (question.type === 'predicate') {
    const { true: yes, false: no } = question.criteria ?? {};
    const lines = [...(yes == null ? [] : [`yes: ${yes}`]), ...(no == null ? [] : [`no: ${no}`])];
    return written(asQuestion(question.asks), lines, lastLine);
  }
  if (question.type === 'score') {
    const lines = question.levels.map(({ label, description }, level) => line(level, label, description));
    return written(question.asks, lines, lastLine);
  }
  const lines = order.map((option, place) => {
    const { value, description } = question.choices[option]!;
    return line(labels[place]!, String(value), description);
  });
  return written(question.asks, lines, lastLine);
}

/** Writes a question whose options are not listed, and the texts of its options. */
export function askOpenly(question: ValidQuestion): {
  readonly parts: readonly PlacedPart[];
  readonly texts: readonly string[];
} {
  switch (question.type) {
    case 'predicate':
      return { parts: askQuestion(question, [], []), texts: ['yes', 'no'] };
    case 'choice':
      return { parts: question.asks, texts: question.choices.map(({ value }) => String(value)) };
    case 'score':
      return { parts: question.asks, texts: question.levels.map(({ label }) => label) };
  }
}

function line(label: string | number, name: string, description: string | null | undefined): string {
  return description ? `${label}: ${name} - ${description}` : `${label}: ${name}`;
}

/** Appends the lines to the question, each on its own line. Without lines, appends the last line after a space. */
function written(
  asks: readonly PlacedPart[],
  lines: readonly string[],
  lastLine: string,
): readonly PlacedPart[] {
  const text = lines.length === 0 ? ` ${lastLine}` : `\n${[...lines, lastLine].join('\n')}`;
  const last = asks.at(-1);
  return last?.type === 'text'
    ? [...asks.slice(0, -1), { ...last, text: last.text + text }]
    : [...asks, { type: 'text', text: text.trimStart() }];
}

/** Turns a statement into a question. Texts that end with a question mark are returned unchanged. */
function asQuestion(asks: readonly PlacedPart[]): readonly PlacedPart[] {
  const last = asks.at(-1);
  if (last?.type === 'text' && last.text.trimEnd().endsWith('?')) return asks;
  const [first, ...rest] = asks;
  return first?.type === 'text'
    ? [{ ...first, text: `Is this true: ${first.text}` }, ...rest]
    : [{ type: 'text', text: 'Is this true: ' }, ...asks];
}
