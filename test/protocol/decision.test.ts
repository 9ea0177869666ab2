/** Decision requests that are refused: each fault with its path, what was expected, and what came. */
import { expect, it } from 'vitest';
import { OnpolicyError } from '../../src/errors.ts';
import { checkDecisionRequest } from '../../src/protocol/index.ts';

const ask = { type: 'predicate', instructions: 'Is it?' };
const choice = (choices: unknown) => ({ questions: [{ type: 'choice', instructions: 'Which?', choices }] });
const score = (levels: unknown) => ({ questions: [{ type: 'score', instructions: 'How?', levels }] });
const many = (count: number) => Array.from({ length: count }, (_, i) => ({ value: `v${i}` }));
const cycle: Record<string, unknown> = {};
cycle['self'] = cycle;

function messages(fields: object): string[] {
  try {
    checkDecisionRequest({ input: 'x', questions: [ask], ...fields });
    return [];
  } catch (error) {
    if (!(error instanceof OnpolicyError)) throw error;
    return error.detail!.map(({ msg }) => msg);
  }
}

it.each<[string, object, string]>([
  ['no questions', { questions: [] }, 'questions: expected 1 to 400 questions, got an empty list'],
  [
    'too many',
    { questions: Array(401).fill(ask) },
    'questions: expected 1 to 400 questions, got a list of 401',
  ],
  [
    'an empty name',
    { questions: { '': ask } },
    'questions.: expected a question with a name that is not empty, got an object',
  ],
  [
    'equal names',
    {
      questions: [
        { ...ask, name: 'a' },
        { ...ask, name: 'a' },
      ],
    },
    'questions.1.name: expected a name that no other question has, got "a"',
  ],
  ['one choice', choice(many(1)), 'questions.0.choices: expected a list of 2 to 255, got a list of 1'],
  ['256 choices', choice(many(256)), 'questions.0.choices: expected a list of 2 to 255, got a list of 256'],
  [
    'equal values',
    choice([{ value: 'a' }, { value: 'a' }]),
    'questions.0.choices.1.value: expected a value that no other choice has, got "a"',
  ],
  ['one level', score([{ label: 'a' }]), 'questions.0.levels: expected a list of 2 to 10, got a list of 1'],
  [
    '11 levels',
    score(Array(11).fill({ label: 'a' })),
    'questions.0.levels: expected a list of 2 to 10, got a list of 11',
  ],
  [
    'no type',
    { questions: [{ instructions: 'x' }] },
    'questions.0.type: this field is required, got nothing',
  ],
  [
    'the kind of another API',
    { questions: [{ type: 'noul', instructions: 'x' }] },
    'questions.0.type: expected "predicate", "choice" or "score", got "noul"',
  ],
  [
    'empty instructions',
    { questions: [{ ...ask, instructions: '' }] },
    'questions.0.instructions: expected a non-empty string or a non-empty list, got ""',
  ],
  ['an input of a number', { input: 5 }, 'input: expected a string or a non-empty list, got 5'],
  ['an empty list', { input: [] }, 'input: expected a string or a non-empty list, got an empty list'],
  [
    'an unknown item',
    { input: [{ type: 'thing' }] },
    'input.0.type: expected "message", "function_call", "function_call_output", "custom_tool_call" or "custom_tool_call_output", got "thing"',
  ],
  [
    'a result without its call',
    { input: [{ type: 'function_call_output', call_id: 'x', output: 'y' }] },
    'input.0.call_id: expected the id of a call that stands before it, got "x"',
  ],
  [
    'NaN',
    { input: [{ role: 'user', content: [{ type: 'input_json', data: { a: Number.NaN } }] }] },
    'input.0.content.0.data.a: expected a finite number, got NaN',
  ],
  [
    'a cycle',
    { input: [{ role: 'user', content: [{ type: 'input_json', data: cycle }] }] },
    'expected at most 256 levels and no object inside itself, got an object',
  ],
  ['0 orders', { orders: 0 }, 'orders: expected an integer from 1 to 255 or null, got 0'],
  [
    'more orders than options',
    { orders: 3, ...choice(many(2)) },
    'orders: expected at most the 2 options of questions.0, got 3',
  ],
  [
    'orders of texts',
    { orders: 2, read: 'text' },
    "orders: expected 1 with read: 'text', which lists no options, got 2",
  ],
  ['another reading', { read: 'heads' }, 'read: expected "labels", "text" or null, got "heads"'],
  [
    'temperature 0',
    { temperature: 0 },
    'temperature: expected a number > 0 and <= 1000000, an object with numbers for kinds of questions, or null, got 0',
  ],
  [
    'temperature NaN',
    { temperature: Number.NaN },
    'temperature: expected a number > 0 and <= 1000000, an object with numbers for kinds of questions, or null, got NaN',
  ],
  [
    'a temperature of an unknown kind',
    { temperature: { box: 1 } },
    'temperature.box: not a field of temperature',
  ],
  ['a stream', { stream: true }, 'stream: expected false or null, got true'],
  ['an unknown field', { top_p: 1 }, 'top_p: not a field of a request'],
])('%s', (_, fields, message) => {
  const found = messages(fields);
  expect(found).toHaveLength(1);
  expect(found[0]).toContain(message);
});

it('takes both forms of questions, and fields of OpenAI that have no effect', () => {
  expect(
    messages({ questions: { a: ask, b: { ...ask, name: null } }, safety_identifier: 'x', stream: false }),
  ).toEqual([]);
  expect(
    messages({ ...choice([{ value: true }, { value: 'true' }]), orders: 2, temperature: { choice: 2 } }),
  ).toEqual([]);
});
