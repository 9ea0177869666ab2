/** Models named by `hf:` URIs with their projectors, from a hub on this machine. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { type ModelHub, openModelHub } from '../../fakes/model-hub.ts';
import { conversationsOf, pathOf, toRequest } from './golden.ts';

const text = fs.readFileSync(pathOf('mlp'));
const mmproj = fs.readFileSync(path.join(path.dirname(pathOf('mlp')), 'mmproj.gguf'));
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-hub-'));
let hub: ModelHub;
beforeAll(async () => {
  hub = await openModelHub({
    'o/pair': {
      'text.gguf': text,
      'mmproj-F16.gguf': mmproj,
      'mmproj-Q8_0.gguf': Buffer.from('no projector'),
    },
    'o/alone': { 'text.gguf': text },
  });
});
afterAll(() => {
  hub.close();
  fs.rmSync(folder, { recursive: true });
});

const conversation = conversationsOf('mlp').find(({ messages }) =>
  JSON.stringify(messages).includes('image_url'),
)!;
const open = (model: string, offline = false): Promise<Runtime> =>
  createRuntime({ model, gpu: false, threads: 1, hub: { endpoint: hub.endpoint, folder, offline } });

describe('a model of a hub', () => {
  it.each([
    ['sees with the projector of its repository', false],
    ['does so again without the hub', true],
  ])('%s', async (_, offline) => {
    const before = hub.asked.length;
    const runtime = await open('hf:o/pair/text.gguf', offline);
    try {
      const answer = await runtime.createCompletion(toRequest(conversation));
      expect(answer.choices[0]!.token_ids).toEqual(conversation.token_ids);
    } finally {
      await runtime.close();
    }
    if (offline) expect(hub.asked).toHaveLength(before);
    expect(hub.asked.filter(({ url }) => url.includes('Q8_0'))).toEqual([]);
  });

  it('does not see with the projector of another repository in the same folder', async () => {
    const runtime = await open('hf:o/alone/text.gguf');
    try {
      await expect(runtime.createCompletion(toRequest(conversation))).rejects.toMatchObject({
        code: 'UNSUPPORTED',
        message: expect.stringContaining('this model takes text only'),
      });
    } finally {
      await runtime.close();
    }
  });
});
