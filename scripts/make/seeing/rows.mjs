// Scenes and questions -> rows for the trainer: a picture, its patches' labels, and the tokens of a dialogue about it.
import { SKILLS } from './questions.mjs';
import { drawPixels, drawScene, isHeldOut, MOST_OBJECTS, PATCH, patchLabels, SIDE } from './scenes.mjs';

/** Rows of embeddings of one picture: as many as it has patches. */
export const PICTURE_TOKENS = (SIDE / PATCH) ** 2;
/** Tokens of a row, the picture among them. */
export const ROW_TOKENS = 136;
/** Stands for each of a picture's rows among the tokens. */
const PICTURE = -1;
/** Share of additional scenes with one object, from which the meaning of words is learned. */
const ALONE_SHARE = 0.1;

const USER = '<|im_start|>user\n';
const ASSISTANT = '<|im_end|>\n<|im_start|>assistant\n';

/**
 * Draws rows without end, as bytes: pixels, three labels a patch, ROW_TOKENS ids of 16 bits, and for each id whether it is
 * learnt. `encode`: text -> ids, special tokens read.
 */
export async function* drawRows(random, encode) {
  for (;;) {
    const { integer, uniform } = random;
    const scene = drawScene(random, uniform() < ALONE_SHARE ? 1 : integer(1, MOST_OBJECTS));
    if (isHeldOut(scene)) continue;
    const ids = new Int16Array(ROW_TOKENS);
    const isLearnt = new Uint8Array(ROW_TOKENS);
    let size = 0;
    for (let turn = 0; ; turn++) {
      const { question, answer } = SKILLS[random.pick(Object.keys(SKILLS))](scene);
      const asked =
        turn === 0 ? await opening(question, random, encode) : await encode(`${USER}${question}${ASSISTANT}`);
      const answered = await encode(`${answer}<|im_end|>`);
      const next = size + asked.length + answered.length;
      if (next > ROW_TOKENS) break;
      ids.set([...asked, ...answered], size);
      isLearnt.fill(1, size + asked.length, next);
      const [newline] = await encode('\n');
      if (next < ROW_TOKENS) ids[next] = newline;
      size = next + 1;
    }
    const tokens = new Uint8Array(ids.buffer);
    yield Buffer.concat([drawPixels(scene, random), patchLabels(scene), tokens, isLearnt]);
  }
}

/** The first turn, with the picture before or behind the question. */
async function opening(question, { uniform }, encode) {
  const isBefore = uniform() < 0.5;
  const before = await encode(isBefore ? USER : `${USER}${question}`);
  const behind = await encode(isBefore ? `${question}${ASSISTANT}` : ASSISTANT);
  return [...before, ...Array(PICTURE_TOKENS).fill(PICTURE), ...behind];
}
