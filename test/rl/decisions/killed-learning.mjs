// Learns decisions without end, for a test that kills this process: <home> <model>.

import { createRuntime } from '../../../dist/index.js';
import { learnDecisions } from '../../../dist/rl/public.js';

const [home, model] = process.argv.slice(2);
const service = await createRuntime({ home, threads: 1, gpu: false });
const questions = [{ type: 'predicate', instructions: 'What do you say?' }];
const examples = Array.from({ length: 90 }, (_, i) => ({
  input: `Is ${i} even?`,
  questions,
  answers: [i % 2 === 0],
}));
await learnDecisions({
  service,
  model,
  examples,
  epochs: 1000,
  onEvent: ({ epoch }) => process.stdout.write(`${epoch}\n`),
});
