// Taste that the Electron template learns: 200 simulated ratings of stories -> the share of liked answers to held-out questions.
// The taste: stories in which the thing is given away. Usage: node scripts/check/try-ratings.mjs [seeds]
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createRuntime } from '../../dist/index.js';
import { Learning } from '../../examples/electron/src/learning.mjs';

const RATINGS = 200;
const RATINGS_PER_STEP = 10;
const LEARNING_RATE = 1e-3; // of the template's catalog, for the embedded model
const RATED = ['dog', 'cat', 'fox', 'cow', 'lion', 'sheep', 'rabbit'];
const HELD_OUT = ['bear', 'horse', 'duck', 'mouse', 'goat'];
const SAMPLES = 24; // for each held-out question

const isLiked = (story) => story.endsWith(' said thank you.');
const question = (animal) => [{ role: 'user', content: `Tell me a story about a ${animal}.` }];

async function run(seed) {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-ratings-'));
  const runtime = await createRuntime({ gpu: false, home });
  const model = await runtime.models.create({ base_model: 'onpolicy-tiny', name: 'taste' });
  const answers = async (messages, n, more) => {
    const { choices } = await runtime.createCompletion({
      model: 'taste',
      messages,
      n,
      max_tokens: 60,
      ...more,
    });
    return choices.map(({ message }) => message.content);
  };
  const heldOut = async () => {
    const all = await Promise.all(
      HELD_OUT.map((animal, i) => answers(question(animal), SAMPLES, { seed: seed + i })),
    );
    return all.flat().filter(isLiked).length / (HELD_OUT.length * SAMPLES);
  };
  const learning = new Learning(runtime, model, home, {
    isIdle: () => false,
    changed: () => {},
    learningRate: LEARNING_RATE,
  });
  const shares = [await heldOut()];
  for (let i = 0; i < RATINGS; i++) {
    const messages = question(RATED[i % RATED.length]);
    const [answer] = await answers(messages, 1, { seed: 1000 * seed + i });
    learning.rate({ id: String(i), messages, answer, rating: isLiked(answer) ? 1 : -1 });
    if ((i + 1) % RATINGS_PER_STEP !== 0) continue;
    await learning.step();
    shares.push(await heldOut());
  }
  const { problem } = learning.state();
  if (problem) throw new Error(problem);
  await runtime.close();
  fs.rmSync(home, { recursive: true });
  return shares;
}

const seeds = Number(process.argv[2] ?? 3);
for (let seed = 1; seed <= seeds; seed++) {
  const shares = await run(seed);
  console.log(`seed ${seed}: ${shares.map((share) => share.toFixed(2)).join(' ')}`);
}
