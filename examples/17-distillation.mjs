// @ts-check
/**
 * A prompt that becomes weights: the embedded model calls `calculate` where its prompt lists that tool, and makes results up elsewhere. It
 * teaches itself, with the tool in the teacher's prompt only: first from the teacher's answers, then from the teacher's scores of its
 * own. `node examples/17-distillation.mjs 1 2 3` takes three seeds. Writes the share of held-out calls right as distillation-curve.svg.
 */
import { createRuntime } from 'onpolicy';
import { meanAndRange, writeCurve } from './lib/curve.mjs';

const parameters = {
  type: 'object',
  properties: { expression: { type: 'string' } },
  required: ['expression'],
};
/** @type {import('onpolicy').Tool[]} */
const tools = [{ type: 'function', function: { name: 'calculate', parameters } }];

/** The last 40 are never trained on. */
const expressions = Array.from(
  { length: 160 },
  (_, i) => `${10 + ((i * 37) % 90)} ${'+-*'[i % 3]} ${10 + ((i * 61 + 7 * Math.floor(i / 90)) % 90)}`,
);
/** @param {string} expression @returns {import('onpolicy').Message[]} */
const ask = (expression) => [{ role: 'user', content: `What is ${expression}?` }];

/** @param {number} seed */
async function learn(seed) {
  const runtime = await createRuntime();
  const { id } = await runtime.models.create({ base_model: 'onpolicy-tiny' });

  /** The share of held-out questions that a model answers with the right call. @param {object} request */
  async function callsRight(request) {
    const asked = expressions.slice(-40).map(async (expression) => {
      const { choices } = await runtime.createCompletion({
        ...request,
        messages: ask(expression),
        temperature: 0,
        max_tokens: 40,
        stream: false,
      });
      const message = choices[0]?.message;
      const call = message?.tool_calls?.[0];
      const said = call?.type === 'function' ? call.function.arguments : message?.content;
      return said?.includes(`{"expression": "${expression}"}`) ? 1 : 0;
    });
    return (await Promise.all(asked)).reduce((/** @type {number} */ sum, one) => sum + one, 0) / asked.length;
  }

  const teacher = await callsRight({ tools });
  const shared = {
    model: id,
    teacher: { tools },
    tasks: expressions.slice(0, -40).map((expression) => ({ messages: ask(expression) })),
    maxTokens: 40,
    seed,
  };
  const steps = 12;
  await runtime.distill({ ...shared, method: 'off_policy', samples: 1, steps, topK: 8, learningRate: 3e-3 });
  await runtime.distill({ ...shared, method: 'on_policy', samples: 2, steps: 24, learningRate: 2e-3 });

  const values = [{ step: 0, value: await callsRight({ model: `${id}@0` }) }];
  for (let checkpoint = 1; checkpoint <= 25; checkpoint += 4)
    values.push({
      step: steps - 1 + checkpoint,
      value: await callsRight({ model: `${id}@${checkpoint}` }),
    });
  const [before, between, after] = [0, 1, -1].map((i) => values.at(i)?.value.toFixed(2));
  console.log(`teacher ${teacher.toFixed(2)}; student ${before}, off policy ${between}, on policy ${after}`);
  await runtime.close();
  return values;
}

const runs = [];
for (const seed of process.argv.length > 2 ? process.argv.slice(2) : [1])
  runs.push(await learn(Number(seed)));
writeCurve('distillation-curve.svg', 'Held-out calls right', meanAndRange(runs));
