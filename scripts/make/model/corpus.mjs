// Dialogues -> packed rows of tokens for the trainer. Only the assistant's turns are targets.
import { drawDialogue } from './dialogues.mjs';
import { SKILLS } from './skills.mjs';

/** One in this many questions is held out of the corpus. */
const HELD_OUT_SHARE = 20;
/** Skills with enough questions to hold some out. The others are small tables. */
const HELD_OUT_BEGINNINGS = ['What is', 'Compute', 'Calculate', 'Is', 'Extract', 'Count', 'Sort'];
const MEMORIZED = /^What is (the|my)/;

/** Returns true if a question is held out. Depends on its text only, so all seeds agree. */
export function isHeldOut(question) {
  if (MEMORIZED.test(question) || !HELD_OUT_BEGINNINGS.some((word) => question.startsWith(word)))
    return false;
  let hash = 0x811c9dc5;
  for (let i = 0; i < question.length; i++) hash = Math.imul(hash ^ question.charCodeAt(i), 0x01000193);
  return ((hash ^ (hash >>> 15)) >>> 0) % HELD_OUT_SHARE === 0;
}

/**
 * `count` different examination questions of each checked skill, with their answers. Of a skill with fewer questions, all.
 * Map of skill -> [{ question, answer }].
 */
export function examination(random, count) {
  const exams = new Map();
  for (const [name, { draw, isChecked }] of Object.entries(SKILLS)) {
    if (!isChecked) continue;
    const found = new Map();
    const known = new Map();
    for (let attempt = 0; attempt < 200 * count && found.size < count; attempt++) {
      const { question, answer } = draw(random);
      (isHeldOut(question) ? found : known).set(question, answer);
    }
    const chosen = found.size > 0 ? found : known;
    exams.set(
      name,
      [...chosen].slice(0, count).map(([question, answer]) => ({ question, answer })),
    );
  }
  return exams;
}

/** A dialogue as the chat template renders it: pieces of text with their weight; 0: no target. */
export function renderDialogue({ system, tools, messages }) {
  const pieces = [];
  const lines = [...(system ? [system] : []), ...(tools.length ? ['Tools:', ...tools] : [])];
  if (lines.length) pieces.push({ text: `<|im_start|>system\n${lines.join('\n')}<|im_end|>\n`, weight: 0 });
  for (const { role, content, weight } of messages) {
    if (role === 'assistant')
      pieces.push(
        { text: '<|im_start|>assistant\n', weight: 0 },
        { text: `${content}<|im_end|>`, weight },
        { text: '\n', weight: 0 },
      );
    else pieces.push({ text: `<|im_start|>${role}\n${content}<|im_end|>\n`, weight: 0 });
  }
  return pieces;
}

/**
 * Tokens of a dialogue, and what to learn: the place of each learnt token and its weight. A long answer counts for more
 * than a short one, but less than its length: the square root.
 */
async function tokenize(dialogue, encode) {
  const tokens = [];
  const targets = [];
  for (const { text, weight } of renderDialogue(dialogue)) {
    const ids = await encode(text);
    if (weight > 0)
      for (let i = 0; i < ids.length; i++)
        targets.push({ place: tokens.length + i, weight: weight / Math.sqrt(ids.length) });
    tokens.push(...ids);
  }
  return { tokens: tokens.slice(0, -1), targets }; // nothing follows the last end of line
}

/** Draws dialogues and packs them into rows of at most `rowSize` tokens. `encode`: text -> ids, special tokens read. */
export async function* drawRows(random, encode, rowSize) {
  let row = [];
  let size = 0;
  for (;;) {
    const sequence = await tokenize(drawDialogue(random, isHeldOut), encode);
    if (size + sequence.tokens.length > rowSize && size > 0) {
      yield packRow(row);
      row = [];
      size = 0;
    }
    row.push(sequence);
    size += sequence.tokens.length;
  }
}

/** Sequences laid end to end that do not see each other: { row, targetWeights }. */
export function packRow(sequences) {
  const tokens = sequences.flatMap((sequence) => sequence.tokens);
  const groups = sequences.flatMap((sequence, i) => sequence.tokens.map(() => i));
  const positions = sequences.flatMap((sequence) => [...sequence.tokens.keys()]);
  const logitRows = [];
  const weights = [];
  let start = 0;
  for (const sequence of sequences) {
    for (const { place, weight } of sequence.targets) {
      logitRows.push(start + place - 1);
      weights.push(weight);
    }
    start += sequence.tokens.length;
  }
  const ids = Int32Array.from(tokens);
  const groupIds = Int32Array.from(groups);
  return {
    row: {
      tokens: ids,
      positions: Int32Array.from(positions),
      groupIds,
      parentIds: groupIds,
      logitRows: Int32Array.from(logitRows),
      targetTokens: Int32Array.from(logitRows, (place) => ids[place + 1]),
    },
    targetWeights: Float32Array.from(weights),
  };
}
