/** A model with fitted decisions -> a decision file: the same prompts, the fitted temperatures, and of several forms the likeliest. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DecisionAnswer, DecisionRequest } from '../../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { numbersOf, QUESTIONS, TICKET } from './questions.ts';

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-decision-export-'));
const to = path.join(home, 'tickets.gguf');
let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ home, gpu: false, threads: 1 });
  await runtime.models.create({ base_model: 'onpolicy-tiny', name: 'tickets' });
});
afterAll(async () => {
  await runtime.close();
  fs.rmSync(home, { recursive: true });
});

describe('a decision file made of a model', () => {
  it('is asked with the same tokens, and answers by the likeliest form at the fitted temperatures', async () => {
    const run = await runtime.openTraining({ model: 'tickets' });
    const decisions = {
      temperatures: { predicate: 2.5, choice: 0.5 },
      with_noise: { choice: { temperature: 0.1, noise: 0.2 } }, // of which decision files know nothing
    };
    await run.saveWeightsForSampler({ decisions });
    await runtime.trainingRuns.delete(run.id);
    const made = await runtime.models.export({ model: 'tickets', to, decisions: true });
    expect(made).toMatchObject({ path: to, format: 'gguf' });
    await using exported = await createRuntime({ gpu: false, threads: 1, model: { path: to } });
    const questions = Object.values(QUESTIONS);
    const content = [{ type: 'input_json' as const, data: { paid: [1, 2], by: 'Ünal' } }];
    const inputs: DecisionRequest['input'][] = [TICKET, '', [{ role: 'user', content }]];
    for (const input of inputs) {
      const ask = async (of: Runtime, model?: string) =>
        (await of.decide({ ...(model ? { model } : {}), input, questions, return_token_ids: true }))
          .answers as readonly DecisionAnswer[];
      const own = await ask(runtime, 'tickets');
      const others = await ask(exported);
      expect(others.map(({ temperature }) => temperature)).toEqual([2.5, 2.5, 0.5, 1]);
      for (const [i, other] of others.entries()) {
        const { prompt_token_ids, label_token_ids } = own[i]!;
        expect(other).toMatchObject({ prompt_token_ids, label_token_ids });
        const { choices } = await exported.createTextCompletion({
          prompt: [...prompt_token_ids!],
          max_tokens: 1,
          logprobs: 1,
          logprob_token_ids: label_token_ids!.flat(),
          return_tokens_as_token_ids: true,
        });
        const found = choices[0]!.logprobs!.top_logprobs![0]!;
        const best = label_token_ids!.map((ids) =>
          Math.max(...ids.map((id) => found[`token_id:${id}`]! / other.temperature)),
        );
        const sum = best.reduce((all, one) => all + Math.exp(one), 0);
        for (const [k, one] of best.entries())
          expect(Math.abs(numbersOf(other)[k]! - Math.exp(one) / sum)).toBeLessThan(1e-9);
      }
    }
  });

  it('is listed as clients look for it, and chat models as those of text', async () => {
    const models = { decider: { path: to }, chat: 'onpolicy-tiny' };
    await using serving = await createRuntime({ gpu: false, threads: 1, models });
    const read = async (path: string, body?: object) =>
      await (
        await serving.fetch(
          `http://in.process${path}`,
          body && { method: 'POST', body: JSON.stringify(body) },
        )
      ).json();
    type Entry = { id: string; architecture: object };
    const { data } = (await read('/v1/models')) as { data: Entry[] };
    expect(Object.fromEntries(data.map(({ id, architecture }) => [id, architecture]))).toMatchObject({
      decider: { input_modalities: ['text'], output_modalities: ['decisions'] },
      chat: { input_modalities: ['text'], output_modalities: ['text'] },
    });
    expect(await read('/api/show', { model: 'decider' })).toMatchObject({ capabilities: ['decision'] });
    const tags = (await read('/api/tags')) as { models: { name: string; capabilities: string[] }[] };
    expect(
      Object.fromEntries(tags.models.map(({ name, capabilities }) => [name, capabilities])),
    ).toMatchObject({ decider: ['decision'], chat: ['completion', 'tools'] });
  });

  it('is not made of another format, nor of a decision file', async () => {
    const peft = runtime.models.export({
      model: 'tickets',
      to: `${to}-peft`,
      format: 'peft',
      decisions: true,
    });
    await expect(peft).rejects.toThrow(
      'decisions: expected false: only GGUF files have entries for decisions',
    );
    const again = runtime.models.export({ model: to, to: `${to}-again`, decisions: true });
    await expect(again).rejects.toMatchObject({ code: 'UNSUPPORTED', param: 'decisions' });
    expect(fs.readdirSync(home).filter((name) => name.includes('again'))).toEqual([]);
  });
});
