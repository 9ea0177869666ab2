/** The pictures and questions that the model which sees is trained on: they agree with each other, and the exam's are held out. */
import { describe, expect, it } from 'vitest';
import { modelScript, seeingScript } from './scripts.ts';

const { createRandom } = await modelScript('random.mjs');
const { COLORS, drawPixels, drawScene, isHeldOut, PATCH, patchLabels, PLACES, SHAPES, SIDE } =
  await seeingScript('scenes.mjs');
const { SKILLS } = await seeingScript('questions.mjs');
const { drawRows, PICTURE_TOKENS, ROW_TOKENS } = await seeingScript('rows.mjs');

const random = createRandom(11);
const scenes = Array.from({ length: 400 }, () => drawScene(random));

describe('pictures', () => {
  it('show every shape in its color at its place', () => {
    for (const scene of scenes) {
      const pixels = drawPixels(scene, random);
      const labels = patchLabels(scene);
      for (const { shape, color, place, x, y } of scene.objects) {
        const distance = (other: readonly number[]): number => {
          const at = 3 * (Math.floor(y) * SIDE + Math.floor(x));
          return other.reduce((sum, level, i) => sum + Math.abs(level - pixels[at + i]!), 0);
        };
        const nearest = Math.min(...Object.values(COLORS).map(distance));
        expect(distance(COLORS[color]!)).toBe(nearest);
        const patch = 3 * (Math.floor(y / PATCH) * (SIDE / PATCH) + Math.floor(x / PATCH));
        const label = [SHAPES.indexOf(shape), Object.keys(COLORS).indexOf(color), PLACES.indexOf(place)];
        expect([...labels.subarray(patch, patch + 3)]).toEqual(label.map((index) => index + 1));
      }
    }
  });

  it('are held out by what is where: one in twenty', () => {
    const share = scenes.filter((scene) => isHeldOut(scene)).length / scenes.length;
    expect(share).toBeGreaterThan(0.02);
    expect(share).toBeLessThan(0.09);
    const [scene] = scenes;
    const moved = scene!.objects.map((object) => ({ ...object, x: object.x + 1 }));
    expect(isHeldOut({ background: 'gray', objects: moved })).toBe(isHeldOut(scene!));
  });
});

describe('questions', () => {
  it('agree with the description of the picture', () => {
    for (const scene of scenes) {
      const answers = Object.values(SKILLS).map((ask) => ask(scene).answer);
      const [description, colors, shapes, places, count] = answers.map((answer) => answer.split(/, | and /));
      const whole = colors!.map((color, i) => `a ${color} ${shapes![i]!.slice(2)} ${places![i]}`);
      expect(description).toEqual(whole);
      expect(count).toEqual([String(whole.length)]);
    }
  });
});

describe('rows', () => {
  it('have one picture and learn the answers alone', async () => {
    const encode = async (text: string) => [...Buffer.from(text)]; // a token a byte
    const rows = drawRows(createRandom(12), encode);
    const labels = 3 * PICTURE_TOKENS;
    for (let i = 0; i < 40; i++) {
      const row = (await rows.next()).value;
      expect(row.length).toBe(3 * SIDE * SIDE + labels + 3 * ROW_TOKENS);
      const start = 3 * SIDE * SIDE + labels;
      const ids = Array.from({ length: ROW_TOKENS }, (_, at) => row.readInt16LE(start + 2 * at));
      const isLearnt = row.subarray(start + 2 * ROW_TOKENS);
      const first = ids.indexOf(-1);
      if (first < 0) continue; // with a token a byte some questions leave no room
      expect(ids.slice(first, first + PICTURE_TOKENS)).toEqual(Array(PICTURE_TOKENS).fill(-1));
      expect(ids.filter((id) => id === -1)).toHaveLength(PICTURE_TOKENS);
      const learnt = ids.filter((_, at) => isLearnt[at] === 1);
      expect(Buffer.from(learnt).toString()).toMatch(/^[a-z0-9, ]+<\|im_end\|>/);
    }
  });
});
