import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestModel, readKvTransfer } from '../../src/models/prompt-files/kv-transfer.ts';
import type { ChatCompletion, JsonObject } from '../../src/protocol/index.ts';
import type { Runtime } from '../../src/runtime/runtime.ts';
import { ask, closeRuntimes, EMBEDDED, LAYOUTS, openRuntime, TINY_LLAMA } from './models.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-transfer-'));
const QUESTION = 'What is the capital of France? And which rivers flow through it?';
const PREFILL = { kv_transfer_params: { do_remote_decode: true } };
afterAll(async () => {
  await closeRuntimes();
  fs.rmSync(folder, { recursive: true });
});

async function prefill(
  runtime: Runtime,
  question = QUESTION,
): Promise<ChatCompletion & { kv_transfer_params: JsonObject }> {
  const answer = await runtime.createCompletion(ask(question, PREFILL));
  expect(answer.kv_transfer_params).toMatchObject({ do_remote_prefill: true, handle: expect.any(String) });
  return answer as ChatCompletion & { kv_transfer_params: JsonObject };
}

/** The parts of a saved prompt. */
function split(content: Buffer): [magic: Buffer, header: Record<string, number>, payload: Buffer] {
  const first = content.indexOf('\n') + 1;
  const second = content.indexOf('\n', first) + 1;
  const header = JSON.parse(content.subarray(first, second).toString());
  return [content.subarray(0, first), header, content.subarray(second)];
}

function fileOf(params: JsonObject): string {
  return path.join(folder, `${String(params['handle'])}.kv`);
}

describe.each(LAYOUTS)('a prompt handed over, %s', (_, kvTokens) => {
  let from: Runtime;
  let to: Runtime;
  beforeAll(async () => {
    from = await openRuntime(TINY_LLAMA, kvTokens, { kvTransferFolder: folder });
    to = await openRuntime(TINY_LLAMA, kvTokens, { kvTransferFolder: folder });
  });

  it('is gone on from without being computed again, and gives the same answers', async () => {
    const { kv_transfer_params, usage, choices } = await prefill(from);
    expect(choices[0]).toMatchObject({ finish_reason: 'length' });
    expect(usage.completion_tokens).toBe(1);
    for (const fields of [{}, { temperature: 1, seed: 5, n: 3 }]) {
      const request = ask(QUESTION, { max_tokens: 12, ...fields });
      const before = to.stats().promptTokens;
      const resumed = await to.createCompletion({ ...request, kv_transfer_params });
      expect(to.stats().promptTokens - before).toBe(1);
      expect(resumed.usage.prompt_tokens_details!.cached_tokens).toBe(usage.prompt_tokens - 1);
      expect(resumed.kv_transfer_params).toBeNull();
      const plain = await from.createCompletion(request);
      expect(resumed.choices.map(({ message }) => message.content)).toEqual(
        plain.choices.map(({ message }) => message.content),
      );
    }
    expect(to.stats()).toMatchObject({ running: 0, waiting: 0, kvTokensInUse: 0 });
  });

  it('serves a longer prompt that begins with it, and is served in company', async () => {
    const { kv_transfer_params, usage } = await prefill(from);
    const turns = [
      { role: 'user', content: QUESTION },
      { role: 'assistant', content: 'Paris.' },
      { role: 'user', content: 'Thanks' },
    ];
    const longer = { messages: turns, temperature: 0, max_tokens: 6, stream: false as const };
    const resumed = await to.createCompletion({ ...longer, kv_transfer_params });
    expect(resumed.usage.prompt_tokens_details!.cached_tokens).toBe(usage.prompt_tokens);
    const whole = await from.createCompletion(longer);
    expect(resumed.choices[0]!.message.content).toBe(whole.choices[0]!.message.content);
    const answers = await Promise.all([
      ...['a', 'b', 'c'].map((word) => to.createCompletion(ask(word.repeat(30), { max_tokens: 20 }))),
      to.createCompletion(ask(QUESTION, { max_tokens: 6, kv_transfer_params })),
    ]);
    const plain = await from.createCompletion(ask(QUESTION, { max_tokens: 6 }));
    expect(answers.at(-1)!.choices[0]!.message.content).toBe(plain.choices[0]!.message.content);
  });

  it('does not mix with what others may see', async () => {
    const { kv_transfer_params } = await prefill(
      from,
      'A secret of its own kind, longer than sixteen tokens.',
    );
    const request = ask('A secret of its own kind, longer than sixteen tokens.', { max_tokens: 2 });
    await to.createCompletion({ ...request, kv_transfer_params });
    for (const cache_salt of [null, `handle ${String(kv_transfer_params['handle'])}`]) {
      const other = await to.createCompletion({ ...request, cache_salt });
      expect(other.usage.prompt_tokens_details!.cached_tokens).toBeLessThan(other.usage.prompt_tokens - 20);
    }
  });

  it('that somebody forged answers only those who name it', async () => {
    const question = 'A question whose saved prompt is replaced by another state.';
    const request = ask(question, { max_tokens: 8 });
    const { kv_transfer_params } = await prefill(from, question);
    const file = fileOf(kv_transfer_params);
    const [magic, header, payload] = split(fs.readFileSync(file));
    const state = payload.subarray(4 * header['tokens']!);
    const middle = Math.floor(0.3 * state.length); // among the numbers, which are most of it
    state.subarray(middle, middle + 64).fill(0x7b);
    const sha256 = createHash('sha256').update(payload).digest('hex');
    fs.writeFileSync(
      file,
      Buffer.concat([magic, Buffer.from(`${JSON.stringify({ ...header, sha256 })}\n`), payload]),
    );
    const forged = await to.createCompletion({ ...request, kv_transfer_params });
    expect(forged.usage.prompt_tokens_details!.cached_tokens).toBeGreaterThan(20);
    const plain = await from.createCompletion(request);
    for (const cache_salt of [null, 'salt']) {
      const other = await to.createCompletion({ ...request, cache_salt });
      expect(other.usage.prompt_tokens_details!.cached_tokens).toBeLessThan(20);
      expect(other.choices[0]!.message.content).toBe(plain.choices[0]!.message.content);
    }
  });

  it('works without a prefix cache', async () => {
    const { kv_transfer_params, usage } = await prefill(from);
    const plain = await openRuntime(TINY_LLAMA, kvTokens, { kvTransferFolder: folder, prefixCache: false });
    const resumed = await plain.createCompletion(ask(QUESTION, { max_tokens: 4, kv_transfer_params }));
    expect(resumed.usage.prompt_tokens_details!.cached_tokens).toBe(usage.prompt_tokens - 1);
    await plain.close();
  });
});

describe('a handle', () => {
  let from: Runtime;
  beforeAll(async () => {
    from = await openRuntime(TINY_LLAMA, undefined, { kvTransferFolder: folder });
  });
  const fails = async (
    runtime: Runtime,
    kv_transfer_params: JsonObject,
    message: RegExp,
    question = QUESTION,
  ): Promise<void> => {
    await expect(
      runtime.createCompletion(ask(question, { max_tokens: 2, kv_transfer_params })),
    ).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      param: 'kv_transfer_params',
      message: expect.stringMatching(message),
    });
  };

  it('of another model, context or prompt is refused', async () => {
    const { kv_transfer_params } = await prefill(from);
    const model = await openRuntime(EMBEDDED, undefined, { kvTransferFolder: folder });
    await fails(model, kv_transfer_params, /to another model/);
    const context = await openRuntime(TINY_LLAMA, 4096, { kvTransferFolder: folder });
    await fails(context, kv_transfer_params, /to another context/);
    await fails(from, kv_transfer_params, /not the beginning of this request/, 'Something else');
    const elsewhere = await openRuntime(TINY_LLAMA, undefined, { kvTransferFolder: `${folder}-other` });
    await fails(elsewhere, kv_transfer_params, /no saved prompt/);
  });

  it('whose file is missing or damaged anywhere is refused', async () => {
    const { kv_transfer_params } = await prefill(from);
    const file = fileOf(kv_transfer_params);
    const good = fs.readFileSync(file);
    for (let i = 0; i < 40; i++) {
      const bad = Buffer.from(good);
      const at = Math.floor((good.length * i) / 40);
      bad[at]! ^= 0x40;
      fs.writeFileSync(file, i % 4 === 3 ? good.subarray(0, at) : bad);
      await fails(from, kv_transfer_params, /damaged|to another/);
    }
    fs.writeFileSync(file, '');
    await fails(from, kv_transfer_params, /damaged/);
    fs.rmSync(file);
    await fails(from, kv_transfer_params, /no saved prompt/);
    fs.writeFileSync(file, good);
    await from.createCompletion(ask(QUESTION, { max_tokens: 2, kv_transfer_params }));
  });

  it('is checked before anything runs', async () => {
    for (const [params, message] of [
      [{ do_remote_decode: 'yes' }, /expected true or false/],
      [{ do_remote_decode: true, handle: '0' }, /without the handle/],
      [{ do_remote_prefill: true }, /got nothing/],
      [{ handle: '../../etc/passwd' }, /one that an answer returned/],
      [{ handle: 7 }, /one that an answer returned/],
    ] as const)
      await fails(from, params, message);
    expect(
      readKvTransfer({ kv_transfer_params: { do_remote_decode: false, remote_host: null }, stream: false }),
    ).toEqual({ kind: 'none' });
    await expect(
      from.createCompletion({ ...ask(QUESTION, PREFILL), stream: true as const }),
    ).rejects.toMatchObject({ code: 'INVALID_REQUEST', param: 'kv_transfer_params' });
  });

  it('is forgotten after a while', async () => {
    const { kv_transfer_params } = await prefill(from);
    const old = new Date(Date.now() - 2 * 3_600_000);
    fs.utimesSync(fileOf(kv_transfer_params), old, old);
    const next = await prefill(from);
    expect(fs.existsSync(fileOf(kv_transfer_params))).toBe(false);
    expect(fs.existsSync(fileOf(next.kv_transfer_params))).toBe(true);
  });

  it('knows models by their content', async () => {
    const copy = path.join(folder, 'copy.gguf');
    const bytes = fs.readFileSync(TINY_LLAMA);
    fs.writeFileSync(copy, bytes);
    expect(await digestModel(copy)).toBe(await digestModel(TINY_LLAMA));
    for (let at = bytes.length >> 1; at < bytes.length; at += 512) bytes[at]! ^= 1;
    fs.writeFileSync(copy, bytes);
    expect(await digestModel(copy)).not.toBe(await digestModel(TINY_LLAMA));
  });
});
