import { describe, expect, it, vi } from 'vitest';
import { listSteps } from '../../src/rl/checkpoint-step.ts';
import { rateAt } from '../../src/rl/sft.ts';
import type { ChatTokenizer } from '../../src/rl/tokens.ts';
import { setUp, tokenizer } from './fake-job.ts';
import { sft } from './training.ts';

describe('sft', () => {
  const example = (answer: string) => ({
    messages: [
      { role: 'user', content: 'ab' },
      { role: 'assistant', content: answer },
    ],
  });

  it('learns the answers with cross-entropy, a batch a step', async () => {
    const { trainer, events, tools } = setUp();
    const result = await sft(
      {
        data: [example('xyz'), example('z'), example('')],
        config: { batch_size: 2, epochs: 2, schedule: 'constant' },
      },
      tools,
    );
    expect(events.filter(({ type }) => type === 'gradient_step')).toHaveLength(4);
    expect(trainer.gradients_seen[0]).toEqual(Array(6).fill(Math.fround(-1 / 6))); // 4 + 2 tokens with their ends
    expect(trainer.shift).toBeGreaterThan(0);
    expect(result.metrics).toMatchObject({ 'data/step_trainable_tokens': 14, 'train/skipped_steps': 0 });
  });

  it('counts conversations that are cut, and takes no step for a batch without targets', async () => {
    const data = [
      example('xyz'),
      example('z'),
      { messages: [{ role: 'user', content: 'a long question' }, example('y').messages[1]!] },
    ];
    const config = { batch_size: 1, packed_sequence_length: 6 };
    const { trainer, events, tools } = setUp();
    const step = vi.spyOn(trainer, 'step');
    const { metrics } = await sft({ data, config }, tools);
    expect(step).toHaveBeenCalledTimes(2);
    expect(events.filter(({ type }) => type === 'gradient_step')).toHaveLength(2);
    expect(metrics['data/step_num_truncated']).toBe(2); // part of the first one is learned
    expect(metrics['data/step_num_trajectories']).toBe(3);
  });

  it('fails if no answer is left', async () => {
    const { tools, checkpoints } = setUp();
    const request = { data: [example('xyz')], config: { packed_sequence_length: 3 } };
    await expect(sft(request, tools)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      param: 'config.packed_sequence_length',
    });
    expect(await listSteps(checkpoints)).toEqual([]);
  });

  it('names a conversation that the template rejects', async () => {
    const { tools } = setUp();
    const strict: ChatTokenizer = {
      ...tokenizer,
      prompt: async (messages) => {
        if (messages[0]!.content === 'odd') throw new Error('roles must alternate');
        return await tokenizer.prompt(messages, null);
      },
    };
    const odd = { messages: [{ role: 'user', content: 'odd' }, ...example('x').messages] };
    await expect(sft({ data: [example('a'), odd] }, { ...tools, tokenizer: strict })).rejects.toMatchObject({
      message: expect.stringMatching(/^data.1: .*roles must alternate/),
      param: 'data.1',
    });
  });

  it('learns all assistant turns, or the last', async () => {
    const messages = [...example('x').messages, ...example('y').messages];
    for (const [assistant_turns, targets] of [
      ['all', 4],
      ['last', 2],
    ] as const) {
      const { trainer, tools } = setUp();
      await sft({ data: [{ messages }], config: { assistant_turns } }, tools);
      const seen = trainer.rows.slice(0, -1); // the last one probes the new checkpoint
      expect(seen.reduce((sum, row) => sum + row.targetTokens.length, 0)).toBe(targets);
    }
  });

  it('rejects unknown settings', async () => {
    const { tools } = setUp();
    await expect(sft({ data: [], config: { epoch: 3 } as never }, tools)).rejects.toThrow(
      /epoch: not a field of config; did you mean epochs/,
    );
  });
});

describe('rateAt', () => {
  it.each([
    ['constant', 0, [0.5, 1, 1, 1]],
    ['linear', 0, [0.5, 1, 1, 0.5]],
    ['cosine', 0, [0.5, 1, 1, 0.5]],
  ] as const)('%s', (schedule, _, expected) => {
    const settings = { learning_rate: 1, schedule, warmup_ratio: 0.5 };
    expect([0, 1, 2, 3].map((step) => rateAt(step, 4, settings))).toEqual(
      expected.map((rate) => expect.closeTo(rate, 9)),
    );
  });
});
