import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import zlib from 'node:zlib';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ChatCompletionRequest, Pixels } from '../../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { connect, serve } from '../../../src/serve/http/index.ts';
import { conversationsOf, fileOf, type Kind, openPair, toRequest, uriOf } from './golden.ts';

type Fields = Partial<ChatCompletionRequest>;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-media-'));
let runtime: Runtime;
beforeAll(async () => {
  runtime = await openPair('qwen2vl', { media: { maxParts: 3, folders: [folder] } });
}, 600_000);
afterAll(async () => {
  await runtime?.close();
  fs.rmSync(folder, { recursive: true });
});

const READING = { media_io_kwargs: { video: { num_frames: 4 } } };
const picture = (url: unknown = uriOf('wide.png')) => ({ type: 'image_url', image_url: { url } }) as never;
const about = (...parts: unknown[]): ChatCompletionRequest['messages'] =>
  [{ role: 'user', content: [...parts, { type: 'text', text: 'what is here?' }] }] as never;
const ask = (fields: Fields = {}, messages = about(picture())) =>
  runtime.createCompletion({
    messages,
    temperature: 0,
    max_completion_tokens: 8,
    ignore_eos: true,
    return_token_ids: true,
    ...fields,
    stream: false,
  });

/** A PNG file of 8-bit RGBA, alpha full. */
function pngOf({ width, height, data }: Pixels): Buffer {
  const lines = Buffer.alloc(height * (1 + 4 * width), 255);
  for (let y = 0; y < height; y++) {
    lines[y * (1 + 4 * width)] = 0; // no filter
    for (let x = 0; x < 4 * width; x++)
      if (x % 4 !== 3) lines[y * (1 + 4 * width) + 1 + x] = data[4 * width * y + x]!;
  }
  const chunk = (type: string, body: Buffer): Buffer => {
    const named = Buffer.concat([Buffer.from(type), body]);
    const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(body.length);
    check.writeUInt32BE(zlib.crc32(named));
    return Buffer.concat([length, named, check]);
  };
  const header = Buffer.from([0, 0, 0, width, 0, 0, 0, height, 8, 6, 0, 0, 0]);
  const signature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('IDAT', zlib.deflateSync(lines)),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

describe('a request with a picture', () => {
  it('streams what it answers as a whole', async () => {
    const whole = await ask();
    let text = '';
    for await (const { choices } of await runtime.createCompletion({
      messages: about(picture()),
      temperature: 0,
      max_completion_tokens: 8,
      ignore_eos: true,
      stream: true,
    }))
      text += choices[0]?.delta.content ?? '';
    expect(text).toBe(whole.choices[0]!.message.content);
  });

  it('has choices that share its prompt', async () => {
    const [alone, several] = [
      await ask({ seed: 3, temperature: 1 }),
      await ask({ n: 3, seed: 3, temperature: 1 }),
    ];
    expect(several.choices).toHaveLength(3);
    expect(several.choices[0]!.token_ids).toEqual(alone.choices[0]!.token_ids);
  });

  it('searches with beams', async () => {
    const beams = await ask({ use_beam_search: true, n: 2, ignore_eos: false });
    expect(beams.choices.length).toBeGreaterThan(0);
    expect(await ask({ use_beam_search: true, n: 2, ignore_eos: false })).toMatchObject({
      choices: beams.choices.map(({ message }) => ({ message: { content: message.content } })),
    });
  });

  it('obeys a JSON Schema', async () => {
    const schema = {
      type: 'object',
      properties: { a: { enum: ['x', 'y'] } },
      required: ['a'],
      additionalProperties: false,
    };
    const answer = await ask({
      ignore_eos: false,
      max_completion_tokens: 40,
      response_format: { type: 'json_schema', json_schema: { name: 'a', schema } },
    });
    expect(['x', 'y']).toContain(JSON.parse(answer.choices[0]!.message.content!).a);
  });

  it('counts media apart, and returns ids of the text alone', async () => {
    const answer = await ask();
    const { prompt_tokens, prompt_tokens_details } = answer.usage;
    expect(prompt_tokens_details!.media_tokens).toBeGreaterThan(0);
    expect(answer.prompt_token_ids).toHaveLength(prompt_tokens - prompt_tokens_details!.media_tokens!);
    expect(answer.prompt_token_ids!.every((id) => id >= 0)).toBe(true);
  });

  it('continues its last message, with its media', async () => {
    const messages = [
      ...about(picture()),
      { role: 'assistant', content: 'It is' },
    ] as ChatCompletionRequest['messages'];
    const answer = await ask({ continue_final_message: true, add_generation_prompt: false }, messages);
    expect(answer.choices[0]!.token_ids).toHaveLength(8);
    const ending = [{ role: 'user', content: [picture()] }] as never;
    const rest = await ask({ continue_final_message: true, add_generation_prompt: false }, ending);
    expect(rest.choices[0]!.token_ids).toHaveLength(8);
  });

  it.each<[string, number, boolean]>([
    ['keeps a medium that fits', -3, true],
    ['drops one that does not', -20, false],
  ])('when it is truncated %s', async (_, change, isKept) => {
    const { prompt_tokens } = (await ask()).usage;
    const answer = await ask({ truncate_prompt_tokens: prompt_tokens + change });
    expect((answer.usage.prompt_tokens_details!.media_tokens ?? 0) > 0).toBe(isKept);
    expect(answer.usage.prompt_tokens).toBeLessThanOrEqual(prompt_tokens + change);
  });

  it('differs with its picture, not with its form', async () => {
    const file = path.join(folder, 'wide.png');
    fs.writeFileSync(file, fileOf('wide.png'));
    const percent = `data:image/png,${[...fileOf('wide.png')].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')}`;
    const one = (await ask()).choices[0]!.token_ids;
    const bytes = new Uint8Array(fileOf('wide.png'));
    for (const url of [pathToFileURL(file).href, percent, uriOf('wide.png').replace('image/png', ''), bytes])
      expect((await ask({}, about(picture(url)))).choices[0]!.token_ids).toEqual(one);
    const asFile = { type: 'file', file: { file_data: uriOf('wide.png'), filename: 'wide.png' } };
    expect((await ask({}, about(asFile))).choices[0]!.token_ids).toEqual(one);
    expect((await ask({}, about(picture(uriOf('photo.jpg'))))).choices[0]!.token_ids).not.toEqual(one);
  });

  it('comes over HTTP from the OpenAI client and from connect', async () => {
    const server = await serve(runtime, { port: 0 });
    const one = (await ask()).choices[0]!.message.content;
    const fields = { temperature: 0, max_completion_tokens: 8, ignore_eos: true };
    try {
      const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
      const model = (await client.models.list()).data[0]!.id;
      const answer = await client.chat.completions.create({
        model,
        messages: about(picture()) as never,
        ...fields,
      });
      expect(answer.choices[0]!.message.content).toBe(one);
      expect(answer.usage!.prompt_tokens_details).toMatchObject({ media_tokens: expect.any(Number) });
      const wrong = about(picture('data:,hello')) as never;
      await expect(
        client.chat.completions.create({ model, messages: wrong, ...fields }),
      ).rejects.toMatchObject({
        status: 400,
        param: 'messages.0.content.0.image_url.url',
      });
      await using remote = await connect({ baseUrl: server.url });
      const bytes = about(picture(new Uint8Array(fileOf('wide.png'))));
      const same = await remote.createCompletion({ messages: bytes, ...fields, stream: false });
      expect(same.choices[0]!.message.content).toBe(one);
    } finally {
      await server.close();
    }
  });

  it('reads the frames of a film as pictures one after the other', async () => {
    const pixels = {
      width: 30,
      height: 20,
      data: Uint8ClampedArray.from({ length: 4 * 600 }, (_, i) => (i * 7) % 256),
    };
    const frames = [uriOf('wide.png'), fileOf('square.png'), pixels];
    const film = about({ type: 'video', video: frames });
    const pictures = about(...[...frames.slice(0, 2), pngOf(pixels)].map(picture));
    const expected = await ask({}, pictures);
    expect((await ask({}, film)).usage.prompt_tokens_details!.media_tokens).toBe(
      expected.usage.prompt_tokens_details!.media_tokens,
    );
    const again = await ask({ logprobs: true }, film);
    expect(again.choices[0]!.token_ids).toEqual(expected.choices[0]!.token_ids);
    const server = await serve(runtime, { port: 0 });
    try {
      await using client = await connect({ baseUrl: server.url });
      const remote = await client.createCompletion({
        messages: film,
        temperature: 0,
        max_completion_tokens: 8,
        ignore_eos: true,
      });
      expect(remote.choices[0]!.message.content).toBe(again.choices[0]!.message.content);
    } finally {
      await server.close();
    }
  });

  it("reads vLLM's form of a film: frames between commas", async () => {
    const base64 = fileOf('photo.jpg').toString('base64');
    const film = about({
      type: 'video_url',
      video_url: { url: `data:video/jpeg;base64,${base64},${base64}` },
    });
    const pictures = about(picture(uriOf('photo.jpg')), picture(uriOf('photo.jpg')));
    expect((await ask({}, film)).choices[0]!.token_ids).toEqual(
      (await ask({}, pictures)).choices[0]!.token_ids,
    );
  });

  it('hands its prompt over', async () => {
    const saved = await ask({ kv_transfer_params: { do_remote_decode: true } });
    const other = await openPair('qwen2vl');
    try {
      const request = {
        messages: about(picture()),
        temperature: 0,
        max_completion_tokens: 8,
        ignore_eos: true,
      } as const;
      const resumed = await other.createCompletion({
        ...request,
        kv_transfer_params: saved.kv_transfer_params,
        stream: false,
      });
      expect(resumed.choices[0]!.message.content).toBe((await ask()).choices[0]!.message.content);
      expect(resumed.usage.prompt_tokens_details!.cached_tokens).toBeGreaterThan(0);
      const wrong = {
        ...request,
        messages: about(picture(uriOf('square.png'))),
        kv_transfer_params: saved.kv_transfer_params,
      };
      await expect(other.createCompletion(wrong)).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    } finally {
      await other.close();
    }
  });
});

describe('a request is refused by the path of its part', () => {
  const at = 'messages.0.content.0';
  it.each<[string, unknown, Fields, string, string]>([
    [
      'an address',
      picture('https://example.org/a.png'),
      {},
      'UNSUPPORTED',
      `${at}.image_url.url: expected a data: URI`,
    ],
    [
      'a file elsewhere',
      picture('file:///etc/passwd'),
      {},
      'INVALID_REQUEST',
      `${at}.image_url.url: expected a file below`,
    ],
    [
      'no base64',
      picture('data:image/png;base64,!!!!'),
      {},
      'INVALID_REQUEST',
      `${at}.image_url.url: expected base64`,
    ],
    [
      'no comma',
      picture('data:image/png'),
      {},
      'INVALID_REQUEST',
      `${at}.image_url.url: expected a data: URI with a comma`,
    ],
    ['no data', picture('data:,'), {}, 'INVALID_REQUEST', `${at}.image_url.url: expected data, got none`],
    [
      'no picture',
      picture('data:,hello'),
      {},
      'INVALID_REQUEST',
      `${at}.image_url.url: expected a PNG, JPEG, GIF or BMP`,
    ],
    [
      'a sound for a model that sees',
      { type: 'input_audio', input_audio: { data: '', format: 'wav' } },
      {},
      'UNSUPPORTED',
      `${at}: this model takes text, pictures (image_url), got a part of type input_audio`,
    ],
    [
      'a film that is not in frames',
      { type: 'video_url', video_url: { url: 'data:video/mp4;base64,AAAA' } },
      {},
      'UNSUPPORTED',
      `${at}.video_url.url: expected data:video/jpeg;base64, with frames between commas`,
    ],
    [
      'a frame that is no picture',
      { type: 'video', video: [uriOf('wide.png'), 'data:,hello'] },
      {},
      'INVALID_REQUEST',
      `${at}.video.1: expected a PNG, JPEG, GIF or BMP`,
    ],
    [
      'pixels of another size',
      { type: 'video', video: [{ data: new Uint8Array(8), width: 2, height: 2 }] },
      {},
      'INVALID_REQUEST',
      `${at}.video.0: expected`,
    ],
    [
      'processor keywords',
      picture(),
      { mm_processor_kwargs: { max_pixels: 9 } },
      'UNSUPPORTED',
      'mm_processor_kwargs.max_pixels',
    ],
    ['ways to read it', picture(), READING, 'UNSUPPORTED', 'media_io_kwargs.video'],
    ['scores of the prompt', picture(), { prompt_logprobs: 1 }, 'UNSUPPORTED', 'prompt_logprobs'],
  ])('%s', async (_, part, fields, code, message) => {
    await expect(ask(fields, about(part))).rejects.toMatchObject({
      code,
      message: expect.stringContaining(message),
    });
  });

  it('too many', async () => {
    const many = about(picture(), picture(), picture(), picture());
    await expect(ask({}, many)).rejects.toMatchObject({ code: 'TOO_LARGE', param: 'messages.0.content.3' });
  });

  it.each<[string, object, string]>([
    ['no projector', { mmproj: null }, 'messages.0.content.0: this model takes text only'],
    [
      'a projector that is not there',
      { mmproj: '/nowhere/mmproj.gguf' },
      'model.mmproj: no such file: /nowhere/mmproj.gguf',
    ],
    ['a projector that is none', { mmproj: 'package.json' }, 'model.mmproj: '],
  ])('%s', async (_, model, message) => {
    const other = await openPair('mlp', {
      model: { path: path.resolve('test/golden/media/mlp/text.gguf'), ...model },
    });
    try {
      await expect(
        other.createCompletion({ messages: about(picture()), stream: false }),
      ).rejects.toMatchObject({ message: expect.stringContaining(message) });
    } finally {
      await other.close();
    }
  });
});

describe.each<[Kind, number]>([
  ['idefics3', 400],
  ['qwen2a', 100],
])('aborts of %s', (kind, count) => {
  it('leave nothing behind', async () => {
    const busy = await createRuntime({
      gpu: false,
      threads: 1,
      model: path.resolve(`test/golden/media/${kind}/text.gguf`),
      media: { cacheBytes: 0 },
    });
    try {
      const request = toRequest(conversationsOf(kind)[0]!);
      await busy.createCompletion(request);
      const aborts = Array.from({ length: count }, async (_, i) => {
        const controller = new AbortController();
        setTimeout(() => controller.abort(), (i * 7) % 40);
        const messages = structuredClone(request.messages) as unknown as { content: unknown[] }[];
        messages[0]!.content.push({ type: 'text', text: String(i) });
        await busy
          .createCompletion({ ...request, messages: messages as never }, { signal: controller.signal })
          .catch((error: { code: string }) => expect(error.code).toBe('ABORTED'));
      });
      await Promise.all(aborts);
      await busy.createCompletion(request);
      expect(busy.mediaStats()).toMatchObject({ running: 0, cachedBytes: 0 });
      expect(busy.stats()).toMatchObject({ running: 0, waiting: 0, kvTokensInUse: 0 });
    } finally {
      await busy.close();
    }
  }, 300_000);
});
