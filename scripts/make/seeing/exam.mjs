// A model that sees -> how many questions about held-out pictures it answers right, greedily, through the engine.
import { createRuntime } from '../../../dist/index.js';
import { encodePng } from './png.mjs';
import { SKILLS } from './questions.mjs';
import { drawPixels, drawScene, isHeldOut, SIDE } from './scenes.mjs';

const AT_ONCE = 16;

/**
 * Held-out scenes as PNG files, each with a question of every skill: [{ png, questions }]. `fits`: which scenes
 * are wanted, by how many there are already.
 */
export function drawExam(random, count, fits = () => true) {
  const exam = [];
  while (exam.length < count) {
    const scene = drawScene(random);
    if (!isHeldOut(scene) || !fits(scene, exam.length)) continue;
    const questions = Object.entries(SKILLS).map(([skill, ask]) => ({ skill, ...ask(scene) }));
    exam.push({ png: encodePng(drawPixels(scene, random), SIDE, SIDE), questions });
  }
  return exam;
}

/** Asks everything. `onWrong` hears of wrong answers. Map of skill -> { right, asked }. */
export async function examine(model, exam, onWrong = () => {}) {
  const results = new Map(Object.keys(SKILLS).map((skill) => [skill, { right: 0, asked: 0 }]));
  const runtime = await createRuntime({ model });
  try {
    for (let i = 0; i < exam.length; i += AT_ONCE)
      await Promise.all(exam.slice(i, i + AT_ONCE).map((one) => ask(runtime, one, results, onWrong)));
  } finally {
    await runtime.close();
  }
  return results;
}

async function ask(runtime, { png, questions }, results, onWrong) {
  const url = `data:image/png;base64,${png.toString('base64')}`;
  for (const { skill, question, answer } of questions) {
    const content = [
      { type: 'image_url', image_url: { url } },
      { type: 'text', text: question },
    ];
    const request = { messages: [{ role: 'user', content }], temperature: 0, max_tokens: 60 };
    const got = (await runtime.createCompletion(request)).choices[0].message.content;
    const result = results.get(skill);
    result.asked++;
    if (got === answer) result.right++;
    else onWrong({ skill, question, answer, got });
  }
}

/** A Markdown table of the results, and the share of right answers. */
export function renderTable(results) {
  const total = (field) => [...results.values()].reduce((sum, one) => sum + one[field], 0);
  const share = total('right') / total('asked');
  const rows = [...results, ['all', { right: total('right'), asked: total('asked') }]];
  const lines = rows.map(
    ([skill, { right, asked }]) => `| ${skill} | ${right} of ${asked} | ${(right / asked).toFixed(3)} |`,
  );
  return { share, table: ['| skill | right | share |', '|---|---|---|', ...lines].join('\n') };
}
