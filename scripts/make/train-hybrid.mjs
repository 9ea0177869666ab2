// A random model with gated delta nets -> one that names the animal it is asked for: taught by examples to name any, then by rewards to name
// that one. Prints the mean reward of each round and writes docs/curves/hybrid-curve.svg. --rounds 60 --seed 1 --out FILE
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { createRuntime } from '../../dist/index.js';
import { writeCurve } from '../../examples/lib/curve.mjs';
import { writeArchitecture } from './architectures/write.mjs';
import { createRandom } from './model/random.mjs';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '60' },
    seed: { type: 'string', default: '1' },
    out: { type: 'string', default: 'docs/curves/hybrid-curve.svg' },
  },
});
const ANIMALS = ['dog', 'cat', 'fox', 'owl', 'bee', 'cow'];
const ANSWERS = 16; // a task
const seed = Number(values.seed);
const { integer } = createRandom(seed);

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-hybrid-'));
const file = path.join(home, 'hybrid.gguf');
await writeArchitecture(file, { name: 'qwen35', type: 'q8_0', seed });
const runtime = await createRuntime({ home, contextSize: 256, training: { rank: 32 } });
const model = await runtime.models.create({ base_model: file });
const ask = (animal) => [{ role: 'user', content: animal }];

const data = Array.from({ length: 240 }, (_, i) => ({
  messages: [
    ...ask(ANIMALS[i % ANIMALS.length]),
    { role: 'assistant', content: ANIMALS[integer(0, ANIMALS.length - 1)] },
  ],
}));
const lesson = await runtime.sft({ model_id: model.id, data, config: { epochs: 4, learning_rate: 3e-3 } });
console.log(`after examples: loss ${(await lesson.done).metrics['loss/train'].toFixed(2)}`);

/** Several answers to one question, each with its reward: 1 for the animal that was asked for. */
async function attempt(animal, round) {
  const messages = ask(animal);
  const { choices } = await runtime.createCompletion({
    model: model.id,
    messages,
    n: ANSWERS,
    max_tokens: 4, // a space and three letters
    seed: 1000 * seed + round,
    logprobs: true,
    return_token_ids: true,
  });
  const trajectories = choices.map((choice) => ({
    messages_and_choices: [...messages, choice],
    reward: choice.message.content === ` ${animal}` ? 1 : 0,
  }));
  return { trajectories };
}

const rewards = [];
for (let round = 1; round <= Number(values.rounds); round++) {
  const trajectory_groups = await Promise.all(ANIMALS.map((animal) => attempt(animal, round)));
  const job = await runtime.train({
    model_id: model.id,
    trajectory_groups,
    experimental_config: { learning_rate: 1e-3 },
  });
  const { metrics } = await job.done;
  rewards.push(metrics['train/reward'] ?? 0);
  console.log(
    `round ${round}: reward ${rewards.at(-1).toFixed(2)}, probs_corr ${metrics['train/probs_corr']?.toFixed(4)}`,
  );
}
writeCurve(
  values.out,
  'Mean reward',
  rewards.map((value, i) => ({ step: i + 1, value })),
  'round',
);
await runtime.close();
fs.rmSync(home, { recursive: true });
