// @ts-check
/**
 * `npm install ai @ai-sdk/openai-compatible zod` before it.
 *
 * An agent that learns to use its tool, through the `ai` package: asked to add two numbers, the embedded model calls `calculate` with the
 * wrong operator, and answers with the wrong result. Some ten steps later it does both right, also with numbers that it has
 * never seen. `node examples/10-agent.mjs 7` takes another seed. Writes the evaluations as agent-curve.svg.
 */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, stepCountIs, tool } from 'ai';
import { createRuntime } from 'onpolicy';
import { progressBar, trainLoop } from 'onpolicy/rl';
import { z } from 'zod';
import { writeCurve } from './lib/curve.mjs';

const seed = Number(process.argv[2] ?? 1);
const runtime = await createRuntime();
const model = await runtime.models.create({ base_model: 'onpolicy-tiny' });

/** Sums of two-digit numbers: the last 40 are never trained on. */
const pairs = Array.from({ length: 440 }, (_, i) => ({
  a: 10 + ((i * 37) % 90),
  b: 10 + ((i * 61 + 7 * Math.floor(i / 90)) % 90),
}));

/** The value of `12 + 34`, and an error text for what is no such expression. @param {string} expression */
function calculate(expression) {
  const found = /^(\d+) ([-+*]) (\d+)$/.exec(expression);
  if (!found) return 'error';
  const [a, b] = [Number(found[1]), Number(found[3])];
  return String(found[2] === '+' ? a + b : found[2] === '-' ? a - b : a * b);
}

/**
 * Two turns: the model calls the tool, reads its result, and answers. At temperature 1 it hardly ever tries the right operator.
 * @param {{ a: number, b: number }} task
 * @param {import('onpolicy/rl').LoopContext} context
 */
async function rollout({ a, b }, { record, signal }, temperature = 1.5) {
  const recorder = record();
  const provider = createOpenAICompatible({
    name: 'agent',
    baseURL: 'http://agent.test/v1',
    fetch: recorder.fetch,
  });
  const { text } = await generateText({
    model: provider('any'),
    prompt: `Add ${a} and ${b}.`,
    temperature,
    maxOutputTokens: 40,
    maxRetries: 0,
    abortSignal: signal,
    stopWhen: stepCountIs(2),
    tools: {
      calculate: tool({
        description: 'Computes an expression',
        inputSchema: z.object({ expression: z.string() }),
        execute: async ({ expression }) => calculate(expression),
      }),
    },
  });
  return recorder.finish({ reward: text.trim() === String(a + b) ? 1 : 0 });
}

const { evaluations } = await trainLoop({
  service: runtime,
  model: model.id,
  tasks: pairs.slice(0, -40),
  rollout,
  evaluate: { tasks: pairs.slice(-40), every: 4, rollout: (task, context) => rollout(task, context, 0) },
  until: { steps: 40, reward: 0.95 },
  groupsPerStep: 8,
  groupSize: 16,
  config: { learning_rate: 1e-3 },
  seed,
  onProgress: progressBar(),
  onEvent: (event) => {
    if (event.type === 'evaluation') console.log(`step ${event.step}: ${event.reward.toFixed(2)} right`);
  },
});
await runtime.close();

writeCurve(
  'agent-curve.svg',
  'Held-out tasks right',
  evaluations.map(({ step, reward }) => ({ step, value: reward })),
);
