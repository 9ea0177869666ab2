// @ts-check
/**
 * An agent that learns to use its tool, through the `ai` package: asked to add two numbers, the embedded model calls `calculate` with the
 * wrong operator, and answers with the wrong result. Some ten steps later it does both right, also with numbers that it has
 * never seen. `node examples/10-agent.mjs 7` takes another seed. Writes the evaluations as agent-curve.svg.
 */
import fs from 'node:fs';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, stepCountIs, tool } from 'ai';
import { createRuntime } from 'onpolicy';
import { progressBar, trainLoop } from 'onpolicy/rl';
import { z } from 'zod';

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

const last = Math.max(1, evaluations.at(-1)?.step ?? 1);
const points = evaluations.map(({ step, reward }) => `${40 + (step * 420) / last},${220 - 200 * reward}`);
const lines = [0, 0.5, 1].map(
  (y) => `<path d="M40 ${220 - 200 * y}H460" stroke="#8884"/><text x="8" y="${224 - 200 * y}">${y}</text>`,
);
fs.writeFileSync(
  'agent-curve.svg',
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 260" font-family="sans-serif" font-size="12" fill="#888">
<title>Share of held-out tasks right, by step</title>${lines.join('')}
<polyline points="${points.join(' ')}" fill="none" stroke="#2a78d6" stroke-width="2"/>
<text x="40" y="246">step 0</text><text x="460" y="246" text-anchor="end">step ${last}: ${evaluations.at(-1)?.reward.toFixed(2)} right</text>
</svg>\n`,
);
