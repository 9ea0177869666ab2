/** Decisions learned from corrections: what is kept, what `decide` then says, and what is refused before anything runs. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DecisionAnswer, DecisionRequest } from '../../../src/protocol/index.ts';
import type { DecisionExample } from '../../../src/rl/decisions/index.ts';
import { learnDecisions } from '../../../src/rl/decisions/index.ts';
import { rewards } from '../../../src/rl/rollout/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-learn-decisions-'));
let runtime: Runtime;
let model: string;
beforeAll(async () => {
  runtime = await createRuntime({ home, gpu: false, threads: 1 });
  ({ id: model } = await runtime.models.create({ base_model: 'onpolicy-tiny', name: 'tickets' }));
});
afterAll(async () => {
  await runtime.close();
  fs.rmSync(home, { recursive: true });
});

const COLORS = ['red', 'green', 'blue'];
/** Rules that the model cannot know: the answers depend on the first word of the input only. */
const examples = Array.from({ length: 48 }, (_, i): DecisionExample => {
  const color = i % COLORS.length;
  return {
    input: `${COLORS[color]} ticket ${i}`,
    questions: {
      is: { type: 'predicate', instructions: 'Is it for us?' },
      team: {
        type: 'choice',
        instructions: 'Which team?',
        choices: [{ value: 'x' }, { value: 'y' }, { value: true }],
      },
      how: { type: 'score', instructions: 'How bad?', levels: [{ label: 'good' }, { label: 'bad' }] },
    },
    answers: {
      is: color === 0,
      team: (['x', 'y', true] as const)[color]!,
      how: color === 1 ? [0.2, 0.8] : 0,
    },
  };
});
const asked: DecisionRequest = {
  model: 'tickets',
  input: 'red ticket 99',
  questions: examples[0]!.questions,
};
const ask = async (of: string, more: Partial<DecisionRequest> = {}) =>
  (await runtime.decide({ ...asked, ...more, model: of })).answers as unknown as Record<
    string,
    DecisionAnswer
  >;

describe('learnDecisions', () => {
  it('keeps what helps on held-out examples, says how much, and takes it back', async () => {
    const before = await ask('tickets');
    const seen: number[] = [];
    const learned = await learnDecisions({
      service: runtime,
      model: 'tickets',
      examples,
      epochs: 4,
      orders: 3,
      learningRate: 3e-3,
      onEvent: ({ epoch }) => seen.push(epoch),
    });
    const { kept, checkpoint, report, modelId } = learned;
    expect({ kept, modelId, checkpoint }).toEqual({ kept: true, modelId: model, checkpoint: `${model}@1` });
    expect(seen).toEqual(report.curve.map(({ epoch }) => epoch));
    expect(Object.values(report.examples).reduce((sum, one) => sum + one, 0)).toBe(examples.length);
    for (const kind of ['predicate', 'choice', 'score'] as const) {
      const { before, after, isFitted } = report.kinds[kind]!;
      if (kind !== 'choice') expect(after.loss).toBeLessThan(before.loss); // three options in three orders take longer
      expect([isFitted, after.temperature, before.count]).toEqual([false, 1, report.examples.heldOut]);
    }
    const after = await ask('tickets');
    expect(after).not.toEqual(before);
    expect(await ask(`${model}@0`)).toEqual(before);
    expect(await runtime.trainingRuns.list()).toEqual([]);
    expect((await runtime.runs.splits(model))['decisions']).toBe(3 * report.examples.heldOut);
    expect(await runtime.report('tickets')).toContain('"isFitted":false');
    await learned.undo();
    expect(await ask('tickets')).toEqual(before);
  });

  it('answers with a fitted temperature and noise, which the trainer and the engine agree on', async () => {
    const run = await runtime.openTraining({ model: 'tickets' });
    const temperatures = { predicate: 2.5, choice: 9 };
    const with_noise = { choice: { temperature: 0.5, noise: 0.3 } };
    const name = await run.saveWeightsForSampler({ decisions: { temperatures, with_noise } });
    await runtime.trainingRuns.delete(run.id);
    const { team: noisy, ...fitted } = await ask('tickets');
    expect(Object.values(fitted).map(({ temperature }) => temperature)).toEqual([2.5, 1]);
    const { team: plain, ...others } = await ask(name, { temperature: { predicate: 2.5, choice: 0.5 } });
    expect(fitted).toEqual(others);
    expect([noisy!.temperature, noisy!.noise, plain!.noise]).toEqual([0.5, 0.3, undefined]);
    const probabilities = (answer: DecisionAnswer) =>
      answer.type === 'choice' ? answer.probabilities.map(({ probability }) => probability) : [];
    for (const [i, p] of probabilities(plain!).entries())
      expect(Math.abs(probabilities(noisy!)[i]! - (0.7 * p + 0.1))).toBeLessThan(1e-12);
    expect(await ask(name, { temperature: 1 })).toEqual(await ask(`${model}@0`));
    await runtime.checkpoints.delete(model, { steps: [Number(name.split('@')[1])] });
  });

  it('leaves the model as it was where nothing is to be learned, and when it is aborted', async () => {
    const noise = examples.map((one, i) => ({ ...one, answers: { is: i % 2 === 0, team: 'x', how: i % 2 } }));
    const end = new AbortController();
    const options = { service: runtime, model: 'tickets', examples: noise, signal: end.signal };
    const before = await ask('tickets');
    const learning = learnDecisions({ ...options, onEvent: ({ epoch }) => epoch === 1 && end.abort() });
    await expect(learning).rejects.toMatchObject({ code: 'ABORTED' });
    expect(await ask('tickets')).toEqual(before);
    expect(await runtime.trainingRuns.list()).toEqual([]);
  });

  it('is a judge: an answer is worth the probability that something is true of it', async () => {
    const instructions = 'Is it about number 7?';
    const reward = rewards.decided({ service: runtime, model: `${model}@0`, instructions });
    const { answers } = await runtime.decide({
      input: 'It is 7.',
      questions: [{ type: 'predicate', instructions }],
    });
    expect(await reward('It is 7.')).toBe(answers[0].probability);
    expect(() => rewards.decided({ service: runtime } as never)).toThrow(
      'instructions: this field is required',
    );
  });

  it.each<[string, object, string]>([
    ['no examples', { examples: [] }, 'examples: expected a non-empty list, got an empty list'],
    ['one input', { examples: [examples[0]] }, 'examples: expected examples enough for three parts, got 1'],
    [
      'another field',
      { examples: [{ ...examples[0], orders: 2 }] },
      'examples.0.orders: expected only input, questions and answers, got 2',
    ],
    [
      'a wrong question',
      { examples: [{ ...examples[0], questions: { is: { type: 'noul' } } }] },
      'examples.0.questions.is.type: expected "predicate", "choice" or "score", got "noul"',
    ],
    [
      'answers in another form',
      { examples: [{ ...examples[0], answers: [true] }] },
      'examples.0.answers: expected an answer for each question, in the same form',
    ],
    [
      'an unknown value',
      { examples: [{ ...examples[0], answers: { is: true, team: 'z', how: 0 } }] },
      'examples.0.answers.team: expected the value of a choice, or a weight for each of 3 options, got "z"',
    ],
    [
      'weights that are none',
      { examples: [{ ...examples[0], answers: { is: [0, 0], team: 'x', how: 0 } }] },
      'examples.0.answers.is: expected a boolean, or a weight for each of 2 options',
    ],
    ['an unknown option', { temperature: 1 }, 'temperature: not a field of options'],
  ])('refuses %s', async (_, fields, message) => {
    const learning = learnDecisions({ service: runtime, model: 'tickets', examples, ...fields } as never);
    await expect(learning).rejects.toThrow(message);
  });
});
