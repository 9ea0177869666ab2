// @ts-check
/**
 * A judge instead of a rule: the model is asked for a number greater or less than another, in words that it has never seen, and another
 * model, which is not trained, says how likely each answer is right. Writes what the judge says of held-out questions as judge-curve.svg.
 */
import { createRuntime } from 'onpolicy';
import { progressBar, trainLoop } from 'onpolicy/rl';
import { writeCurve } from './lib/curve.mjs';

const seed = Number(process.argv[2] ?? 1);
const runtime = await createRuntime();
const model = await runtime.models.create({ base_model: 'onpolicy-tiny' });

/** Questions; the last 40 are never trained on. */
const tasks = Array.from({ length: 120 }, (_, i) => ({
  word: i % 2 === 0 ? 'greater' : 'less',
  than: 20 + ((i * 37) % 61),
}));

/**
 * How likely the judge, the model without what it learns here, says yes.
 * @param {string} question
 * @param {AbortSignal} signal
 */
async function approval(question, signal) {
  const { choices } = await runtime.createCompletion(
    {
      model: 'onpolicy-tiny',
      messages: [{ role: 'user', content: `${question} Answer yes or no.` }],
      max_tokens: 1,
      logprobs: true,
      top_logprobs: 5,
      stream: false,
    },
    { signal },
  );
  const yes = choices[0]?.logprobs?.content?.[0]?.top_logprobs.find(({ token }) => token === 'yes');
  return yes ? Math.exp(yes.logprob) : 0;
}

/**
 * @param {{ word: string, than: number }} task
 * @param {import('onpolicy/rl').LoopContext} context
 */
async function rollout({ word, than }, { record, signal }, temperature = 1) {
  const recorder = record();
  /** @type {import('onpolicy').Message[]} */
  const messages = [{ role: 'user', content: `Say a number ${word} than ${than}.` }];
  const { choices } = await recorder.service.createCompletion(
    { messages, temperature, max_tokens: 3, stream: false },
    { signal },
  );
  const answer = choices[0]?.message.content ?? '';
  const isRight = word === 'greater' ? Number(answer) > than : Number(answer) < than;
  const reward = await approval(`Is ${answer} ${word} than ${than}?`, signal);
  return recorder.finish({ reward, metrics: { right: isRight ? 1 : 0 } });
}

const { evaluations } = await trainLoop({
  service: runtime,
  model: model.id,
  tasks: tasks.slice(0, -40),
  rollout,
  evaluate: { tasks: tasks.slice(-40), every: 4, rollout: (task, context) => rollout(task, context, 0) },
  until: { steps: 80, reward: 0.95 },
  groupsPerStep: 8,
  groupSize: 16,
  config: { learning_rate: 1e-3 },
  seed,
  onProgress: progressBar(),
  onEvent: (event) => {
    if (event.type !== 'evaluation') return;
    const right = event.metrics['val/right'] ?? 0;
    console.log(
      `step ${event.step}: the judge says ${event.reward.toFixed(2)}, ${right.toFixed(2)} are right`,
    );
  },
});
await runtime.close();
writeCurve(
  'judge-curve.svg',
  "The judge's approval",
  evaluations.map(({ step, reward }) => ({ step, value: reward })),
);
