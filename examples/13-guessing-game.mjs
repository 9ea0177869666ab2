// @ts-check
/**
 * A game of several turns with a reward at its end: the model guesses a number in three tries, and is told "greater" or "less" after each, in
 * words that it has never seen. Writes the share of games that it wins with numbers it was never trained on as guessing-curve.svg.
 */
import { createRuntime } from 'onpolicy';
import { progressBar, trainLoop } from 'onpolicy/rl';
import { writeCurve } from './lib/curve.mjs';

/** How often it may guess. */
const TRIES = 3;
/** How near a guess must be. Three guesses without the hints win at most 75 of the 90 numbers. */
const CLOSE = 12;
/**
 * Returns the reward of a lost game while the model learns: more for a near miss, so that attempts differ though all are lost.
 * @param {number} distance
 */
const nearness = (distance) => 0.5 - distance / 200;
const seed = Number(process.argv[2] ?? 1);
const runtime = await createRuntime();
const model = await runtime.models.create({ base_model: 'onpolicy-tiny' });

/** All numbers of two digits. Every third one is never trained on. */
const numbers = Array.from({ length: 90 }, (_, i) => 10 + i);

/**
 * One game, won or lost.
 * @param {number} secret
 * @param {import('onpolicy/rl').LoopContext} context
 * @param {{ temperature?: number, lost?: (distance: number) => number }} options `lost`: what a lost game is worth
 */
async function play(secret, { record, signal }, { temperature = 1.3, lost = nearness } = {}) {
  const recorder = record();
  /** @type {import('onpolicy').Message[]} */
  const messages = [{ role: 'user', content: 'Say a number.' }];
  for (let tries = 1; ; tries++) {
    const answer = await recorder.service.createCompletion(
      { messages, temperature, max_tokens: 4, stream: false },
      { signal },
    );
    const content = answer.choices[0]?.message.content ?? '';
    const guess = Number.parseInt(content, 10);
    const distance = guess > 0 ? Math.min(Math.abs(guess - secret), 90) : 90;
    const isFound = distance <= CLOSE;
    if (isFound || tries === TRIES)
      return recorder.finish({ reward: isFound ? 1 : lost(distance), metrics: { tries } });
    const hint =
      guess > 0 ? `Say a number ${secret > guess ? 'greater' : 'less'} than ${guess}.` : 'Say a number.';
    messages.push({ role: 'assistant', content }, { role: 'user', content: hint });
  }
}

const { evaluations } = await trainLoop({
  service: runtime,
  model: model.id,
  tasks: numbers.filter((number) => number % 3 > 0),
  rollout: play,
  evaluate: {
    tasks: numbers.filter((number) => number % 3 === 0),
    every: 4,
    rollout: (secret, context) => play(secret, context, { temperature: 0, lost: () => 0 }),
  },
  until: { steps: 40, reward: 0.6 },
  groupsPerStep: 8,
  groupSize: 16,
  config: { learning_rate: 5e-4, scale_rewards: false },
  seed,
  onProgress: progressBar(),
  onEvent: (event) => {
    if (event.type === 'evaluation') console.log(`step ${event.step}: ${event.reward.toFixed(2)} won`);
  },
});
await runtime.close();
writeCurve(
  'guessing-curve.svg',
  'Held-out games won',
  evaluations.map(({ step, reward }) => ({ step, value: reward })),
);
