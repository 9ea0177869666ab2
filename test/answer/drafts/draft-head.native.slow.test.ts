/** Layers for multi-token prediction as a source of drafts: right or wrong, no answer changes. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { architectureFiles } from '../../architectures/files.ts';
import { answers, asked, rewritten } from './drafted.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-heads-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

let files: Record<string, string>;
beforeAll(() => {
  files = architectureFiles(['qwen35-mtp', 'glm4moe-mtp', 'hy_v3-mtp2']);
}, 120_000);

/**
 * A random model where the next token depends on the last alone, in the model and in its heads: all drafts are right. `wrong`: the layer of
 * a head that knows nothing.
 */
async function rightModel(random: string, wrong?: number): Promise<string> {
  const to = path.join(folder, `${wrong === undefined ? 'right' : 'half'}-${path.basename(random)}`);
  return await rewritten(random, to, (tensor, [inputs, outputs], values) => {
    const isNorm = /(enorm|shared_head_norm)\.weight$|^output_norm\.weight$/.test(tensor);
    const isProjection = tensor.endsWith('eh_proj.weight');
    if (!isNorm && !isProjection && !/(attn_output|ffn_down\w*|ssm_out)\.weight$/.test(tensor)) return false;
    values.fill(isNorm ? 1 : 0);
    if (isProjection && tensor !== `blk.${wrong}.nextn.eh_proj.weight`)
      for (let i = 0; i < outputs!; i++) values[i * inputs! + i] = 1;
    return true;
  });
}

describe.each(['qwen35-mtp', 'glm4moe-mtp', 'hy_v3-mtp2'])('%s', (name) => {
  it('answers the same with drafts that are wrong', { timeout: 60_000 }, async () => {
    const plain = await answers(files[name]!, false);
    const drafted = await answers(files[name]!, { method: 'mtp', maxTokens: 3 });
    expect(drafted.tokens).toEqual(plain.tokens);
    expect(drafted.draftedTokens).toBeGreaterThan(0);
  });

  it('answers the same with drafts that are right', { timeout: 60_000 }, async () => {
    const right = await rightModel(files[name]!);
    const plain = await answers(right, false);
    const drafted = await answers(right, { method: 'mtp', maxTokens: 3 });
    expect(drafted.tokens).toEqual(plain.tokens);
    expect(drafted.acceptedTokens).toBeGreaterThan(0);
    expect(drafted.acceptedTokens).toBe(drafted.draftedTokens);
  });
});

describe('a model with several such layers', () => {
  it('makes each draft of a step with the next of them', { timeout: 60_000 }, async () => {
    const half = await rightModel(files['hy_v3-mtp2']!, 5);
    const plain = await answers(half, false);
    const drafted = await answers(half, { method: 'mtp', maxTokens: 3 });
    expect(drafted.tokens).toEqual(plain.tokens);
    expect(drafted.acceptedTokens).toBeGreaterThan(0);
    expect(drafted.acceptedTokens).toBeLessThan(drafted.draftedTokens);
  });
});

it('is refused by name where a model has no such layers', async () => {
  await using runtime = await createRuntime({ threads: 1 });
  const request = asked('one', { speculation: { method: 'mtp' } });
  await expect(runtime.createCompletion(request)).rejects.toMatchObject({
    code: 'UNSUPPORTED',
    param: 'speculation.method',
    message: expect.stringContaining('multi-token prediction'),
  });
});
