/** Pictures together with adapters and tools. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeGgufAdapter } from '../../../src/models/lora/gguf-adapter.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { randomNumbers } from '../../fakes/random-numbers.ts';
import { openPair, uriOf } from './golden.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-media-surface-'));
const file = path.join(folder, 'adapter.gguf');
let runtime: Runtime;
beforeAll(async () => {
  const random = randomNumbers(5);
  const factor = () => Float32Array.from({ length: 4 * 64 }, () => random() - 0.5);
  const weights = { 'blk.0.attn_q': { a: factor(), b: factor() } };
  const adapter = { architecture: 'qwen2vl', alpha: 4, rank: 4, weights };
  fs.writeFileSync(file, Buffer.concat(writeGgufAdapter(adapter)));
  runtime = await openPair('qwen2vl');
}, 600_000);
afterAll(async () => {
  await runtime?.close();
  fs.rmSync(folder, { recursive: true });
});

const about = (url: string, text: string) =>
  [
    {
      role: 'user',
      content: [
        { type: 'image_url', image_url: { url } },
        { type: 'text', text },
      ],
    },
  ] as never;

it('an adapter changes what is said about a picture; both share its rows, and no prompt', async () => {
  const ask = async (scale: number | null) => {
    const { choices, usage } = await runtime.createCompletion({
      messages: about(uriOf('wide.png'), 'what is here?'),
      temperature: 0,
      max_tokens: 8,
      ignore_eos: true,
      logprobs: true,
      ...(scale === null ? {} : { adapters: [{ file, scale }] }),
      stream: false,
    });
    const logprobs = choices[0]!.logprobs!.content!.map(({ logprob }) => logprob);
    return { logprobs, cached: usage.prompt_tokens_details!.cached_tokens };
  };
  const plain = await ask(null);
  const { encodes } = runtime.mediaStats();
  const [adapted, none] = [await ask(4), await ask(0)];
  expect(runtime.mediaStats().encodes).toBe(encodes);
  expect([plain.cached, adapted.cached]).toEqual([0, 0]);
  expect(none.cached).toBeGreaterThan(0); // without effect: the model's own weights compute it
  expect(Math.abs(adapted.logprobs[0]! - plain.logprobs[0]!)).toBeGreaterThan(1e-2);
  for (const [i, logprob] of none.logprobs.entries())
    expect(Math.abs(logprob - plain.logprobs[i]!)).toBeLessThan(2e-3);
});

describe('the model that sees', () => {
  it('calls a tool about a picture', async () => {
    const pictures = new URL('../../../models/seeing/', import.meta.url);
    const model = fileURLToPath(new URL('onpolicy-seeing.gguf', pictures));
    await using seeing = await createRuntime({ model, gpu: false, threads: 1 });
    const url = `data:image/png;base64,${fs.readFileSync(new URL('pictures/one.png', pictures), 'base64')}`;
    const parameters = {
      type: 'object',
      properties: { shape: { enum: ['circle', 'triangle'] } },
      required: ['shape'],
      additionalProperties: false,
    };
    const { choices, usage } = await seeing.createCompletion({
      messages: about(url, 'What is in the picture?'),
      tools: [{ type: 'function', function: { name: 'report', parameters } }],
      tool_choice: 'required',
      temperature: 0,
      stream: false,
    });
    expect(usage.prompt_tokens_details!.media_tokens).toBe(64);
    expect(choices[0]).toMatchObject({ finish_reason: 'tool_calls' });
    const [call] = choices[0]!.message.tool_calls!;
    expect(call).toMatchObject({ type: 'function', function: { name: 'report' } });
    expect(['circle', 'triangle']).toContain(
      JSON.parse((call as { function: { arguments: string } }).function.arguments).shape,
    );
  });
});
