// @ts-check
/**
 * A strategy of several turns, learnt from one reward at the end: a weather station may say "same weather as in Oslo", and so on. The model
 * must ask on until one says what the weather is, and answer with that and its city. At first it gives up or makes an answer up.
 * `node examples/16-references.mjs 1 2 3` learns with three seeds. Writes the share of right answers about cities that it was never trained
 * on as references-curve.svg.
 */
import { createRuntime } from 'onpolicy';
import { progressBar, trainLoop } from 'onpolicy/rl';
import { meanAndRange, writeCurve } from './lib/curve.mjs';

const CITIES =
  'Paris Berlin Madrid Rome London Lisbon Vienna Athens Warsaw Dublin Oslo Tokyo Delhi Cairo Nairobi Lima Havana Ottawa Prague Quito';
const WEATHER = ['sunny', 'cloudy', 'windy', 'rainy'];
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
/** @type {import('onpolicy').Tool[]} */
const tools = [{ type: 'function', function: { name: 'get_weather', parameters } }];

/** @typedef {{ chain: string[], weather: string }} Task each city refers to the next one, the last one knows */

/**
 * Chains of one to three references between some cities.
 * @param {string[]} cities
 * @param {number[]} strides from a city to the next one, without a common divisor with their number
 */
function chainsOf(cities, strides) {
  /** @type {Task[]} */
  const tasks = [];
  for (const [start] of cities.entries())
    for (const stride of strides)
      for (const length of [2, 3, 4]) {
        const chain = Array.from({ length }, (_, i) => cities[(start + i * stride) % cities.length] ?? '');
        tasks.push({ chain, weather: WEATHER[tasks.length % 4] ?? '' });
      }
  return tasks;
}
const known = CITIES.split(' ').slice(0, 14);
const others = CITIES.split(' ').slice(14);

/**
 * One conversation. It ends with an answer, or with a call that no station understands.
 * @param {Task} task
 * @param {import('onpolicy/rl').LoopContext} context
 */
async function rollout({ chain, weather }, { record, signal }, temperature = 1.5) {
  const recorder = record();
  /** @type {import('onpolicy').Message[]} */
  const messages = [{ role: 'user', content: `What is the weather in ${chain[0]}?` }];
  for (let calls = 0; ; calls++) {
    const { choices } = await recorder.service.createCompletion(
      { messages, tools, temperature, max_tokens: 32, stream: false },
      { signal },
    );
    const message = choices[0]?.message;
    const isRight = message?.content === `It is ${weather} in ${chain.at(-1)}.`;
    const [call, second] = message?.tool_calls ?? [];
    const given = call?.type === 'function' && !second ? call.function.arguments : '';
    const place = chain.findIndex((city) => given === `{"city": "${city}"}`);
    if (!message || !call || place < 0 || calls === 6)
      return recorder.finish({ reward: isRight ? 1 : 0, metrics: { calls } });
    const next = chain[place + 1];
    const content = next ? `same weather as in ${next}` : weather;
    messages.push(message, { role: 'tool', tool_call_id: call.id, content });
  }
}

/** @param {number} seed */
async function learn(seed) {
  const runtime = await createRuntime();
  const model = await runtime.models.create({ base_model: 'onpolicy-tiny' });
  const { evaluations } = await trainLoop({
    service: runtime,
    model: model.id,
    tasks: chainsOf(known, [1, 3, 5, 9]),
    rollout,
    evaluate: {
      tasks: chainsOf(others, [1, 5]),
      every: 1,
      rollout: (task, context) => rollout(task, context, 0),
    },
    until: { steps: 12, reward: 1 },
    groupsPerStep: 8,
    groupSize: 16,
    config: { learning_rate: 7e-4 },
    seed,
    onProgress: progressBar(),
    onEvent: (event) => {
      if (event.type !== 'evaluation') return;
      const calls = event.metrics['val/calls'] ?? 0;
      console.log(`step ${event.step}: ${event.reward.toFixed(2)} right, ${calls.toFixed(1)} calls`);
    },
  });
  await runtime.close();
  return evaluations.map(({ step, reward }) => ({ step, value: reward }));
}

const runs = [];
for (const seed of process.argv.length > 2 ? process.argv.slice(2) : [1])
  runs.push(await learn(Number(seed)));
writeCurve('references-curve.svg', 'Held-out questions right', meanAndRange(runs));
