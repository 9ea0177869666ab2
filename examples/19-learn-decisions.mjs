// @ts-check
/**
 * Decisions that learn from corrections: the embedded model is asked in words that it does not know, and 15 % of the answers that it
 * learns from are wrong. Writes the loss on examples that it does not learn from as decisions-curve.svg.
 * `node examples/19-learn-decisions.mjs 1 2 3` takes three seeds.
 */
import { createRuntime } from 'onpolicy';
import { learnDecisions } from 'onpolicy/rl';
import { meanAndRange, writeCurve } from './lib/curve.mjs';

const questions = [{ type: /** @type {const} */ ('predicate'), instructions: 'What do you say?' }];
const examples = Array.from({ length: 600 }, (_, i) => {
  const [a, b] = [10 + ((i * 37) % 90), 10 + ((i * 61 + 7 * Math.floor(i / 90)) % 90)];
  const isWrong = (i * 29) % 100 < 15;
  return { input: `Does ${a} exceed ${b}?`, questions, answers: [isWrong ? a <= b : a > b] };
});

/** @param {number} seed */
async function learn(seed) {
  const runtime = await createRuntime();
  const { id } = await runtime.models.create({ base_model: 'onpolicy-tiny' });
  const { kept, report } = await learnDecisions({
    service: runtime,
    model: id,
    examples,
    learningRate: 2e-3,
    seed,
  });
  for (const [when, measures] of Object.entries(report.kinds.predicate ?? {})) {
    if (typeof measures === 'boolean') continue;
    const [accuracy, brier, ece] = [measures.accuracy, measures.brier, measures.ece].map((x) => x.toFixed(2));
    console.log(`${when}: accuracy ${accuracy}, Brier ${brier}, calibration error ${ece}`);
  }
  console.log(kept ? `kept the weights of epoch ${report.epoch}` : 'kept nothing');
  await runtime.close();
  return report.curve.map(({ epoch, loss }) => ({ step: epoch, value: loss }));
}

const runs = [];
for (const seed of process.argv.length > 2 ? process.argv.slice(2) : [1])
  runs.push(await learn(Number(seed)));
writeCurve('decisions-curve.svg', 'Loss on other examples', meanAndRange(runs), 'epoch');
