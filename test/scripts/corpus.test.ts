/** The embedded model's corpus: its answers are right, in the model's template, and it holds no exam question. */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { renderChatTemplate } from '../../src/template/index.ts';
import { type Dialogue, modelScript } from './scripts.ts';

const { createRandom } = await modelScript('random.mjs');
const { drawDialogue } = await modelScript('dialogues.mjs');
const { drawRows, examination, isHeldOut, renderDialogue } = await modelScript('corpus.mjs');
const { isAtLeastAsGood, renderTable } = await modelScript('exam.mjs');
const { learningRate } = await modelScript('train.mjs');

const dialogues = (seed: number, count: number): Dialogue[] => {
  const random = createRandom(seed);
  return Array.from({ length: count }, () => drawDialogue(random, isHeldOut));
};

describe('dialogues', () => {
  it('are the same for the same seed, and others for another', () => {
    expect(dialogues(1, 50)).toEqual(dialogues(1, 50));
    expect(dialogues(1, 50)).not.toEqual(dialogues(2, 50));
  });

  it('hold no question that is kept for the examination', () => {
    const questions = dialogues(3, 5000).flatMap(({ tools, messages }) =>
      tools.length ? [] : messages.filter(({ role }) => role === 'user').map(({ content }) => content),
    );
    expect(questions.length).toBeGreaterThan(4000);
    expect(questions.filter(isHeldOut)).toEqual([]);
  });

  it('add, compare and sort correctly', () => {
    let checked = 0;
    for (const { tools, messages } of dialogues(4, 5000)) {
      if (tools.length) continue;
      for (const [i, { content: question }] of messages.entries()) {
        const answer = messages[i + 1]?.content;
        const sum = /^(?:What is|Compute|Calculate) (\d+) ([+-]) (\d+)[.?]$/.exec(question);
        if (sum) expect(Number(answer), question).toBe(Number(sum[1]) + Number(`${sum[2]}${sum[3]}`));
        const comparison = /^Is (\d+) (greater|less) than (\d+)\?/.exec(question);
        if (comparison) {
          const difference = Number(comparison[1]) - Number(comparison[3]);
          const isTrue = comparison[2] === 'greater' ? difference > 0 : difference < 0;
          expect(answer, question).toBe(isTrue ? 'yes' : 'no');
        }
        const sort = /^Sort the numbers (.*)\.$/.exec(question);
        if (sort) {
          const numbers = sort[1]!.split(', ').map(Number);
          expect(answer, question).toBe(numbers.toSorted((a, b) => a - b).join(', '));
        }
        if (sum || comparison || sort) checked++;
      }
    }
    expect(checked).toBeGreaterThan(1000);
  });

  it('are rendered as the model renders them', async () => {
    const template = await templateOfModel();
    for (const dialogue of dialogues(5, 300)) {
      const { system, tools, messages } = dialogue;
      const expected = renderChatTemplate({
        template,
        messages: [
          ...(system ? [{ role: 'system', content: system }] : []),
          ...messages.map(({ role, content }) => ({ role, content })),
        ],
        tools: tools.map((name) => ({ type: 'function', function: { name } })),
      });
      const pieces = renderDialogue(dialogue);
      expect(pieces.map(({ text }) => text).join('')).toBe(expected);
      const learnt = pieces.filter(({ weight }) => weight > 0).map(({ text }) => text);
      const answers = messages.filter(({ role }) => role === 'assistant');
      expect(learnt).toEqual(answers.map(({ content }) => `${content}<|im_end|>`));
    }
  });
});

/** The chat template in the embedded model's file. */
async function templateOfModel(): Promise<string> {
  const { readKeyValues } = await import(new URL('../../bench/model/gguf.mjs', import.meta.url).href);
  const file = fileURLToPath(new URL('../../models/onpolicy-tiny.gguf', import.meta.url));
  const value = readKeyValues(file).get('tokenizer.chat_template') as Buffer;
  return value.toString('utf8', 4 + 8); // after its type and its length
}

describe('rows', () => {
  it('hold whole dialogues that do not see each other, and learn each answer token once', async () => {
    const encode = async (text: string) => [...Buffer.from(text)]; // a token a byte
    const rows = drawRows(createRandom(6), encode, 2048);
    for (let i = 0; i < 5; i++) {
      const { row, targetWeights } = (await rows.next()).value;
      expect(row.tokens.length).toBeLessThanOrEqual(2048);
      expect(targetWeights.length).toBe(row.logitRows.length);
      expect(new Set(row.logitRows).size).toBe(row.logitRows.length);
      for (const [target, place] of row.logitRows.entries()) {
        expect(row.groupIds[place]).toBe(row.groupIds[place + 1]);
        expect(row.targetTokens[target]).toBe(row.tokens[place + 1]);
        expect(row.positions[place + 1]).toBe(row.positions[place]! + 1);
      }
      const text = Buffer.from(row.targetTokens).toString();
      expect(text).toContain('<|im_end|>');
      expect(text).not.toContain('<|im_start|>');
    }
  });
});

describe('the examination', () => {
  it('asks what the corpus does not hold, where there is enough to choose from', () => {
    const exams = examination(createRandom(7), 30);
    for (const skill of ['sum', 'comparison', 'extraction', 'sorting'])
      expect(exams.get(skill)?.filter(({ question }) => !isHeldOut(question))).toEqual([]);
    for (const skill of ['sum', 'comparison', 'extraction', 'sorting', 'spelling', 'capital', 'opposite'])
      expect(new Set(exams.get(skill)?.map(({ question }) => question)).size, skill).toBeGreaterThan(20);
  });

  it('compares two models skill by skill', () => {
    const results = (sum: number, list: number) =>
      new Map([
        ['sum', { right: sum, asked: 10 }],
        ['list', { right: list, asked: 9 }],
      ]);
    expect(isAtLeastAsGood(results(3, 4), results(3, 5))).toBe(true);
    expect(isAtLeastAsGood(results(3, 4), results(9, 3))).toBe(false);
    expect(renderTable(results(3, 4), results(9, 5)).split('\n').slice(2)).toEqual([
      '| sum | 3 of 10 | 9 of 10 |',
      '| list | 4 of 9 | 5 of 9 |',
      '| all | 7 of 19 | 14 of 19 |',
    ]);
  });
});

describe('the learning rate', () => {
  it('rises, is highest after the warm-up and falls to a fiftieth', () => {
    expect(learningRate(1, 0, 0)).toBeCloseTo(0.01);
    expect(learningRate(1, 100, 0)).toBeCloseTo(1);
    expect(learningRate(1, 1000, 0.5)).toBeCloseTo(0.51);
    expect(learningRate(1, 2000, 1)).toBeCloseTo(0.02);
  });
});
