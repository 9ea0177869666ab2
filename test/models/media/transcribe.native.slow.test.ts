/** Transcripts of a model that hears: in process, over HTTP, by OpenAI's client; and what it refuses before it decodes. */
import OpenAI, { toFile } from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Transcription, TranscriptionEvent } from '../../../src/protocol/index.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { connect, type Server, serve } from '../../../src/serve/http/index.ts';
import { fileOf, openPair } from './golden.ts';
import { wav } from './sound-files.ts';

const sound = fileOf('tone.wav');
const LIMIT = { max_completion_tokens: 8 };
let runtime: Runtime;
let server: Server;
let client: OpenAI;
let whole: Transcription;
beforeAll(async () => {
  runtime = await openPair('qwen2a', { media: { maxSeconds: 40, maxBytes: 2_000_000 } });
  server = await serve(runtime, { port: 0, allowAnonymous: true });
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'any', maxRetries: 0 });
  whole = await runtime.transcribe({ file: sound, ...LIMIT });
}, 600_000);
afterAll(async () => {
  await server?.close();
  await runtime?.close();
});

it('hears the sound', async () => {
  expect(whole.text).not.toBe('');
  expect(whole.usage.input_token_details.audio_tokens).toBeGreaterThan(10);
  expect(whole).toMatchObject({ finish_reason: 'length', usage: { output_tokens: 8 } });
  expect(await runtime.transcribe({ file: sound, response_format: 'text', ...LIMIT })).toBe(whole.text);
  const scored = async (name: string) => {
    const { logprobs } = await runtime.transcribe({ file: fileOf(name), include: ['logprobs'], ...LIMIT });
    return logprobs!.map(({ logprob }) => logprob);
  };
  const heard = await scored('tone.wav');
  expect(heard).toHaveLength(8);
  expect(await scored('music.wav')).not.toEqual(heard);
});

it('says the same as a text, over a connection, and in events', async () => {
  await using remote = connect({ baseUrl: server.url });
  const encoded = { file: sound.toString('base64'), ...LIMIT };
  for (const service of [runtime, remote]) {
    expect((await service.transcribe(encoded)).text).toBe(whole.text);
    const events: TranscriptionEvent[] = [];
    for await (const event of await service.transcribe({ file: sound, stream: true, ...LIMIT }))
      events.push(event);
    const deltas = events.flatMap((event) => (event.type === 'transcript.text.delta' ? [event.delta] : []));
    expect(deltas.join('').trimEnd()).toBe(whole.text);
    const { logprobs: _, ...expected } = whole;
    expect(events.at(-1)).toEqual({ type: 'transcript.text.done', ...expected });
  }
});

describe("OpenAI's client", () => {
  const file = () => toFile(sound, 'tone.wav');
  const model = 'onpolicy';

  it('gets transcripts, texts and events', async () => {
    const given = { file: await file(), model: '', ...LIMIT };
    expect((await client.audio.transcriptions.create({ ...given, language: 'en' })).text).not.toBe('');
    expect((await client.audio.transcriptions.create(given)).text).toBe(whole.text);
    expect(await client.audio.transcriptions.create({ ...given, response_format: 'text' })).toBe(whole.text);
    let text = '';
    for await (const event of await client.audio.transcriptions.create({ ...given, stream: true }))
      if (event.type === 'transcript.text.delta') text += event.delta;
    expect(text.trimEnd()).toBe(whole.text);
  });

  it('gets errors about its own fields', async () => {
    await expect(client.audio.transcriptions.create({ file: await file(), model })).rejects.toMatchObject({
      status: 404,
    });
    await expect(
      client.audio.transcriptions.create({ file: await file(), model: '', response_format: 'srt' }),
    ).rejects.toMatchObject({ status: 400, param: 'response_format' });
  });
});

it.each<[string, Uint8Array | string, string, RegExp]>([
  ['no sound', new Uint8Array(100), 'INVALID_REQUEST', /^file: expected a WAV, MP3 or FLAC sound/],
  ['nothing', new Uint8Array(0), 'INVALID_REQUEST', /^file: expected data, got none/],
  ['no base64', '!!', 'INVALID_REQUEST', /^file: expected base64/],
  [
    'more bytes than the limit',
    new Uint8Array(2_000_001),
    'TOO_LARGE',
    /^file: expected at most 2000000 bytes/,
  ],
  [
    'more seconds than the limit',
    wav(41 * 8000, 8000),
    'INVALID_REQUEST',
    /^file: expected a sound of at most 40/,
  ],
  ['an address', 'file:///etc/passwd', 'INVALID_REQUEST', /^file: /],
])('%s is refused, as a whole and in windows', async (_, file, code, message) => {
  for (const chunking_strategy of [null, 'auto'] as const)
    await expect(runtime.transcribe({ file, chunking_strategy })).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
      param: 'file',
    });
});

it('hears a long sound in windows, each of its own samples', async () => {
  const file = fileOf('long.wav'); // 35 s
  const windows = await runtime.soundWindows(file);
  expect(windows.map((window) => (window.length - 44) / 4 / 16_000)).toEqual([30, 9]);
  const sample = (at: number): number => file.readInt16LE(44 + 2 * at) / 32_768;
  for (const [window, start] of [
    [windows[0]!, 0],
    [windows[1]!, 26 * 16_000],
  ] as const)
    for (const at of [0, 1, 777, 100_000])
      expect(Buffer.from(window).readFloatLE(44 + 4 * at)).toBeCloseTo(sample(start + at), 4);
  const parts: Transcription[] = [];
  for (const window of windows) parts.push(await runtime.transcribe({ file: window, ...LIMIT }));
  const joined = await runtime.transcribe({ file, chunking_strategy: 'auto', ...LIMIT });
  expect(joined.usage.output_tokens).toBe(16);
  expect(joined.usage.input_tokens).toBe(parts[0]!.usage.input_tokens + parts[1]!.usage.input_tokens);
  let last: TranscriptionEvent | null = null;
  const streamed = { file, chunking_strategy: 'auto', stream: true, ...LIMIT } as const;
  for await (const event of await runtime.transcribe(streamed)) last = event;
  expect(last).toEqual({ type: 'transcript.text.done', ...joined });
  expect(await runtime.soundWindows(sound)).toHaveLength(1);
  expect((await runtime.transcribe({ file: sound, chunking_strategy: 'auto', ...LIMIT })).text).toBe(
    whole.text,
  );
});

it('a model that does not hear refuses the file', async () => {
  await using seeing = await openPair('mlp');
  await expect(seeing.transcribe({ file: sound })).rejects.toMatchObject({
    code: 'UNSUPPORTED',
    param: 'file',
  });
});
