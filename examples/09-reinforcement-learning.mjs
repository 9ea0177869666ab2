// @ts-check
/**
 * Reinforcement learning in a loop: sample, score, train, sample again. The embedded model is asked for stories in words that
 * it has never seen. At first they are about something else, a quarter of a minute later not. Writes the rewards as learning-curve.svg.
 */
import { createRuntime } from 'onpolicy';
import { writeCurve } from './lib/curve.mjs';

const ANIMALS = ['dog', 'cat', 'fox', 'bear', 'lion', 'horse', 'sheep', 'rabbit', 'cow'];
const ROUNDS = 24;
const TASKS = 10; // a round
const ANSWERS = 8; // a task

const runtime = await createRuntime();
const model = await runtime.models.create({ base_model: 'onpolicy-tiny' });

/** @param {string} animal @returns {import('onpolicy').Message[]} */
const ask = (animal) => [{ role: 'user', content: `Tell me a ${animal} story.` }];
const example = ask('wolf'); // wolves are never trained on
const sentence = { model: model.id, stop: '.', max_tokens: 32 };

/** @param {string} when */
async function printExample(when) {
  const { choices } = await runtime.createCompletion({ ...sentence, messages: example, temperature: 0 });
  console.log(`${when}: ${choices[0]?.message.content}`);
}

/** Several answers to one task, each with its reward: 1 when the story is about the animal that was asked for. */
async function attempt() {
  const animal = ANIMALS[Math.floor(Math.random() * ANIMALS.length)] ?? 'dog';
  const messages = ask(animal);
  const sampled = { ...sentence, messages, n: ANSWERS, logprobs: true, return_token_ids: true };
  const { choices } = await runtime.createCompletion(sampled);
  const trajectories = choices.map((choice) => ({
    messages_and_choices: [...messages, choice],
    reward: choice.message.content?.includes(` ${animal} named`) ? 1 : 0,
  }));
  return { trajectories };
}

await printExample('before');
/** @type {number[]} */
const rewards = [];
for (let round = 1; round <= ROUNDS; round++) {
  const trajectory_groups = await Promise.all(Array.from({ length: TASKS }, attempt));
  const job = await runtime.train({
    model_id: model.id,
    trajectory_groups,
    experimental_config: { learning_rate: 1e-3 },
  });
  const { metrics } = await job.done;
  rewards.push(metrics['train/reward'] ?? 0);
  if (round === 1 || round % 4 === 0) console.log(`round ${round}: reward ${rewards.at(-1)?.toFixed(2)}`);
}
await printExample('after');

writeCurve(
  'learning-curve.svg',
  'Mean reward',
  rewards.map((value, i) => ({ step: i + 1, value })),
  'round',
);
await runtime.close();
