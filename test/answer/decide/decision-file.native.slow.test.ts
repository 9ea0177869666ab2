/** Decision files of every type that is read from labels: their prompts written out, and their numbers from the bare engine's logits. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { DecisionAnswer, DecisionQuestion, DecisionRequest } from '../../../src/protocol/index.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { createFetch } from '../../../src/serve/http/index.ts';
import { softmax } from '../../fakes/reference-sampler.ts';
import { lastLogits, whyNoBareEngine } from '../../models/formats/reference/bare-engine.ts';
import { writeTinyModel } from '../../rl/tiny-model.ts';
import { CODES, choices, numbersOf } from './questions.ts';

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-decision-file-'));
afterAll(() => fs.rmSync(root, { recursive: true }));

/** Shows everything that a template gets. */
const TEMPLATE =
  '<s>{{ state if state is string else state | tojson }}#{{ id }} {{ type }} ' +
  '{{ instructions if instructions is string else instructions | tojson }}' +
  '{% for o in options %}|{{ o.label }}={{ o.key }}:{{ o.description }}{% endfor %}' +
  '{% for q in questions %}/{{ q.id }} {{ q.type }} {{ q.instructions }}{% for o in q.options %},{{ o.label }}{{ o.key }}{% endfor %}{% endfor %}' +
  '>{{ images | length }}';
const LETTERS = Array.from({ length: 26 }, (_, i) => String.fromCharCode(65 + i));

async function open(type: string) {
  const file = path.join(root, `${type}.gguf`);
  await writeTinyModel(file, {
    architecture: 'llama',
    type: 'f32',
    ...CODES,
    metadata: [
      ['llama.decision.type', type],
      ['llama.decision.temperature.noul', { float: 2.5 }],
      ['llama.decision.temperature.choice.2', { float: 0.5 }],
      ['llama.decision.temperature.choice', { float: 1.5 }],
      ['llama.decision.temperature.score.3_5', { float: 3 }],
      ['llama.decision.temperature.choice.large', { float: 4 }],
      ['tokenizer.chat_template.systemone', TEMPLATE],
    ],
  });
  const model = { path: file, fusedAttention: false, cacheType: 'f32' } as const;
  return { file, runtime: await createRuntime({ threads: 1, gpu: false, model }) };
}

type Expected = {
  readonly temperature: number;
  /** Prompts, and for each the forms of each option in the order of the answer. */
  readonly prompts: readonly (readonly [text: string, forms: readonly (readonly string[])[]])[];
  readonly isRated?: boolean;
};

/** Compares answers with prompts and labels that are written out, by the logits of the bare engine. */
async function expectAnswers(type: string, request: DecisionRequest, expected: readonly Expected[]) {
  const { file, runtime } = await open(type);
  await using _closing = runtime;
  const list = (await runtime.decide({ ...request, return_token_ids: true }))
    .answers as readonly DecisionAnswer[];
  const encode = (text: string) => runtime.tokenize(text, { parseSpecial: true });
  const prompts = await Promise.all(expected.flatMap((one) => one.prompts.map(([text]) => encode(text))));
  const rows = lastLogits(file, prompts, { f32: true });
  let at = 0;
  for (const [i, one] of expected.entries()) {
    const answer = list[i]!;
    expect(await runtime.detokenize([...answer.prompt_token_ids!])).toBe(one.prompts[0]![0]);
    expect(answer.prompt_token_ids).toEqual(prompts[at]);
    expect(answer.temperature).toBeCloseTo(one.temperature, 12);
    const means: number[] = [];
    for (const [, forms] of one.prompts) {
      const row = rows[at++]!;
      const most: number[] = [];
      for (const group of forms) {
        const ids = await Promise.all(group.map((text) => runtime.tokenize(text)));
        most.push(Math.max(...ids.map(([id, ...others]) => (others.length > 0 ? -Infinity : row[id!]!))));
      }
      for (const [k, p] of softmax(most.map((logit) => logit / one.temperature)).entries())
        means[k] = (means[k] ?? 0) + p / one.prompts.length;
    }
    const rated = means.reduce((sum, p, rating) => sum + (p * rating) / 8, 0);
    const found = numbersOf(answer);
    for (const [k, p] of (one.isRated ? [rated, 1 - rated] : means).entries())
      expect(Math.abs(found[k]! - p)).toBeLessThan(1e-6);
  }
}

const forms = (labels: readonly string[]) => labels.map((label) => [label]);
const predicate: DecisionQuestion = {
  type: 'predicate',
  name: 'is',
  instructions: 'Is it?',
  criteria: { true: 'it is' },
};
const choice: DecisionQuestion = {
  type: 'choice',
  instructions: 'Which?',
  choices: [{ value: 'left', description: 'west' }, { value: 'right' }],
};
const many: DecisionQuestion = { type: 'choice', name: 'many', instructions: 'Which?', choices: choices(30) };
const score: DecisionQuestion = {
  type: 'score',
  name: 'how',
  instructions: [{ type: 'input_json', data: { ask: 'how' } }],
  levels: [{ label: 'low' }, { label: 'mid', description: 'so so' }, { label: 'top' }],
};
const LEVELS = (labels: readonly string[]) =>
  `|${labels[0]}=0:low|${labels[1]}=1:mid - so so|${labels[2]}=2:top`;
const optionsOf = (labels: readonly string[]) =>
  labels.map((label, i) => `|${label}=option ${i}:None`).join('');

describe.skipIf(whyNoBareEngine())('a decision file', () => {
  it('openjev: letters, true first, no labels for the template', async () => {
    const labels = [...LETTERS, 'a', 'b', 'c', 'd'];
    const none = labels.map(() => '');
    await expectAnswers('openjev', { input: 'S', questions: [predicate, choice, many, score] }, [
      { temperature: 2.5, prompts: [['<s>S#is noul Is it?|=true:it is|=false:None>0', forms(['A', 'B'])]] },
      { temperature: 0.5, prompts: [['<s>S#1 choice Which?|=left:west|=right:None>0', forms(['A', 'B'])]] },
      { temperature: 1.5, prompts: [[`<s>S#many choice Which?${optionsOf(none)}>0`, forms(labels)]] },
      {
        temperature: 3,
        prompts: [[`<s>S#how score {"ask": "how"}${LEVELS(['', '', ''])}>0`, forms(['A', 'B', 'C'])]],
      },
    ]);
  }, 120_000);

  it('lev: ratings, choices in two orders, sorted keys, codes of two letters', async () => {
    const labels = [...LETTERS, 'AA', 'AB', 'AC', 'AD'];
    const backwards = labels.map((label, i) => `|${label}=option ${29 - i}:None`).join('');
    const input = [
      { role: 'user', content: [{ type: 'input_json', data: { b: 1, a: { d: [], c: null } } }] },
    ] as const;
    const state = '{"a": {"c": null, "d": []}, "b": 1}';
    await expectAnswers('lev', { input, questions: [predicate, choice, many] }, [
      {
        temperature: 2.5,
        isRated: true,
        prompts: [[`<s>${state}#is noul Is it?|A=false:None|B=true:it is>0`, forms(LETTERS.slice(0, 9))]],
      },
      {
        temperature: 1.5,
        prompts: [
          [`<s>${state}#1 choice Which?|A=left:west|B=right:None>0`, forms(['A', 'B'])],
          [`<s>${state}#1 choice Which?|A=right:None|B=left:west>0`, forms(['B', 'A'])],
        ],
      },
      {
        temperature: 4,
        prompts: [
          [`<s>${state}#many choice Which?${optionsOf(labels)}>0`, forms(labels)],
          [`<s>${state}#many choice Which?${backwards}>0`, forms(labels.toReversed())],
        ],
      },
    ]);
  }, 120_000);

  it('nimble: all questions in each prompt, false first', async () => {
    const all = '/is noul Is it?,Afalse,Btrue/1 choice Which?,Aleft,Bright>0';
    await expectAnswers('nimble', { input: 'S', questions: [predicate, choice] }, [
      {
        temperature: 2.5,
        prompts: [[`<s>S#is noul Is it?|A=false:None|B=true:it is${all}`, forms(['B', 'A'])]],
      },
      {
        temperature: 0.5,
        prompts: [[`<s>S#1 choice Which?|A=left:west|B=right:None${all}`, forms(['A', 'B'])]],
      },
    ]);
  }, 120_000);

  it('pplx-decider: codes, one order; a conversation is a list of messages', async () => {
    const input = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Yes?' },
    ] as const;
    const state = '[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]';
    await expectAnswers('pplx-decider', { input, questions: [score, choice], orders: 2 }, [
      {
        temperature: 3,
        prompts: [
          [`<s>${state}#how score {"ask": "how"}${LEVELS(['A', 'B', 'C'])}>0`, forms(['A', 'B', 'C'])],
        ],
      },
      {
        temperature: 0.5,
        prompts: [
          [`<s>${state}#1 choice Which?|A=left:west|B=right:None>0`, forms(['A', 'B'])],
          [`<s>${state}#1 choice Which?|A=right:None|B=left:west>0`, forms(['B', 'A'])],
        ],
      },
    ]);
  }, 120_000);

  it('lfm2-d1: the likeliest form of words, letters and digits', async () => {
    const letters: DecisionQuestion = {
      type: 'choice',
      name: 'xy',
      instructions: 'Which?',
      choices: [{ value: 'Y' }, { value: 'X' }],
    };
    // Above 26 options the labels are numbers of two digits; those that are not one token take the next letter that is free.
    const labels = ['00', '01', ...LETTERS, 'a', 'b'];
    await expectAnswers('lfm2-d1', { input: 'S', questions: [predicate, letters, score, choice, many] }, [
      {
        temperature: 2.5,
        prompts: [
          [
            '<s>S#is noul Is it?|true=true:it is|false=false:None>0',
            [
              ['yes', 'Yes', 'YES'],
              ['no', 'No', 'NO'],
            ],
          ],
        ],
      },
      {
        temperature: 0.5,
        prompts: [
          [
            '<s>S#xy choice Which?|Y=Y:None|X=X:None>0',
            [
              ['Y', ' Y'],
              ['X', ' X'],
            ],
          ],
        ],
      },
      {
        temperature: 3,
        prompts: [[`<s>S#how score {"ask": "how"}${LEVELS(['0', '1', '2'])}>0`, forms(['0', '1', '2'])]],
      },
      {
        temperature: 0.5,
        prompts: [
          [
            '<s>S#3 choice Which?|A=left:west|B=right:None>0',
            [
              ['A', ' A'],
              ['B', ' B'],
            ],
          ],
        ],
      },
      {
        temperature: 1.5,
        prompts: [
          [`<s>S#many choice Which?${optionsOf(labels)}>0`, labels.map((label) => [label, ` ${label}`])],
        ],
      },
    ]);
  }, 120_000);
});

describe('a decision file', () => {
  it("takes System One's state and instructions as data, and a request's temperature before its own", async () => {
    const { runtime } = await open('openjev');
    await using _closing = runtime;
    const ask = async (body: object) => {
      const response = await createFetch(runtime)('http://in.process/v1/systemone', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      return (await response.json()) as { answers: Record<string, { noul: number }> };
    };
    const { answers } = await ask({
      state: [{ a: 1 }],
      questions: { is: { type: 'noul', instructions: { ask: 'how' } } },
    });
    const input = [{ role: 'user', content: [{ type: 'input_json', data: [{ a: 1 }] }] }] as const;
    const instructions = [{ type: 'input_json', data: { ask: 'how' } }] as const;
    const request: DecisionRequest = { input, questions: { is: { type: 'predicate', instructions } } };
    const own = (await runtime.decide(request)).answers as Record<string, DecisionAnswer>;
    expect(own['is']).toMatchObject({ type: 'predicate', temperature: 2.5 });
    expect(Math.abs(numbersOf(own['is']!)[0]! - answers['is']!.noul)).toBeLessThan(1e-6); // unfused attention rounds by company
    const other = (await runtime.decide({ ...request, temperature: 1 })).answers as typeof own;
    expect(other['is']!.temperature).toBe(1);
  });

  it('computes a state once, and breaks the control tokens of a state', async () => {
    const { runtime } = await open('pplx-decider');
    await using _closing = runtime;
    const input = `${'The state of the ticket is open. '.repeat(20)}</s>`;
    const questions = Array.from({ length: 20 }, (): DecisionQuestion => choice);
    const { answers, usage } = await runtime.decide({ input, questions, return_token_ids: true });
    const state = await runtime.tokenize(input);
    expect(usage.input_tokens_details.cached_tokens).toBeGreaterThan(19 * (state.length - 32));
    const end = (await runtime.tokenize('</s>', { parseSpecial: true }))[0]!;
    for (const { prompt_token_ids } of answers as readonly DecisionAnswer[])
      expect(prompt_token_ids).not.toContain(end);
  });
});
