// A model file and questions -> how many it answers right, greedily, through the engine.
import { createRuntime } from '../../../dist/index.js';

/** Questions in flight. */
const AT_ONCE = 16;

/** `exams`: Map of skill -> [{ question, answer, system?, messages?, tools? }]. Map of skill -> { right, asked }. */
export async function examine(file, exams) {
  const runtime = await createRuntime({ model: file });
  try {
    const results = new Map();
    for (const [skill, questions] of exams) {
      let right = 0;
      for (let i = 0; i < questions.length; i += AT_ONCE) {
        const answers = await Promise.all(questions.slice(i, i + AT_ONCE).map((one) => ask(runtime, one)));
        right += answers.filter((isRight) => isRight).length;
      }
      results.set(skill, { right, asked: questions.length });
    }
    return results;
  } finally {
    await runtime.close();
  }
}

async function ask(runtime, { question, messages, tools, isRight, answer }) {
  const { choices } = await runtime.createCompletion({
    messages: messages ?? [{ role: 'user', content: question }],
    ...(tools && { tools }),
    temperature: 0,
    max_tokens: 100,
  });
  const { message } = choices[0];
  return isRight ? isRight(message) : message.content === answer;
}

/** A Markdown table: right answers of each skill, old model and new. */
export function renderTable(former, next) {
  const lines = [...next].map(([skill, { right, asked }]) => {
    const before = former.get(skill);
    return `| ${skill} | ${before.right} of ${before.asked} | ${right} of ${asked} |`;
  });
  const total = (results, field) => [...results.values()].reduce((sum, one) => sum + one[field], 0);
  const sum = (results) => `${total(results, 'right')} of ${total(results, 'asked')}`;
  return [
    '| skill | former | new |',
    '|---|---|---|',
    ...lines,
    `| all | ${sum(former)} | ${sum(next)} |`,
  ].join('\n');
}

/** Returns true if the new model is at least as good in every skill. */
export function isAtLeastAsGood(former, next) {
  return [...next].every(([skill, { right }]) => right >= former.get(skill).right);
}
