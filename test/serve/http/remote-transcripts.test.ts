/** Transcripts of a connected service: by the endpoint of servers that have one, in each form that they answer in, else by a chat. */
import { describe, expect, it } from 'vitest';
import type { TranscriptionEvent } from '../../../src/protocol/index.ts';
import { connect, createPool } from '../../../src/serve/http/index.ts';
import { openHandler } from './exchange.ts';

const WAV = Uint8Array.from([...Buffer.from('RIFF'), 1, 2, 3]);
const NO_TOKENS = { type: 'tokens', input_tokens: 0, output_tokens: 0, total_tokens: 0 };

/** A server that answers its endpoint of transcripts so, and knows no other. */
function server(answer: () => Response) {
  const forms: FormData[] = [];
  const paths: string[] = [];
  const fetch = async (url: string | URL | Request, init?: RequestInit): Promise<Response> => {
    paths.push(new URL(String(url)).pathname);
    if (paths.at(-1) !== '/v1/audio/transcriptions')
      return Response.json({ detail: 'Not Found' }, { status: 404 });
    forms.push(await new Response(init!.body, { headers: init!.headers! }).formData());
    return answer();
  };
  return { service: connect({ baseUrl: 'http://whisper:8000', fetch, maxRetries: 0 }), forms, paths };
}

const events = (...data: unknown[]): Response =>
  new Response(
    data.map((item) => `data: ${typeof item === 'string' ? item : JSON.stringify(item)}\n\n`).join(''),
    {
      headers: { 'content-type': 'text/event-stream' },
    },
  );

async function read(stream: AsyncIterable<TranscriptionEvent>): Promise<TranscriptionEvent[]> {
  const all: TranscriptionEvent[] = [];
  for await (const event of stream) all.push(event);
  return all;
}

describe('a server that only has the endpoint', () => {
  it.each([
    ['JSON', () => Response.json({ text: ' Hello there. ' })],
    ['seconds', () => Response.json({ text: 'Hello there.', usage: { type: 'duration', seconds: 3 } })],
    ['a text', () => new Response('Hello there.\n')],
  ])('answers with %s', async (_, answer) => {
    const { service, forms } = server(answer);
    const given = {
      file: WAV,
      model: 'whisper-1',
      language: 'en',
      prompt: 'Omar',
      temperature: 0.5,
      seed: 3,
    };
    expect(await service.transcribe(given)).toMatchObject({
      text: 'Hello there.',
      usage: NO_TOKENS,
      finish_reason: 'stop',
    });
    const { file, ...fields } = Object.fromEntries(forms[0]!);
    expect(fields).toEqual({
      model: 'whisper-1',
      language: 'en',
      prompt: 'Omar',
      temperature: '0.5',
      seed: '3',
    });
    expect((file as File).name).toBe('sound.wav');
    expect(new Uint8Array(await (file as File).arrayBuffer())).toEqual(WAV);
    expect(await service.transcribe({ file: WAV, response_format: 'text' })).toBe('Hello there.');
  });

  it.each([
    ['base64', Buffer.from(WAV).toString('base64')],
    ['a data: URI', `data:audio/wav;base64,${Buffer.from(WAV).toString('base64')}`],
    ['percents', `data:audio/wav,RIFF%01%02%03`],
  ])('gets the bytes of %s', async (_, file) => {
    const { service, forms } = server(() => Response.json({ text: 'x' }));
    await service.transcribe({ file });
    const sent = await (forms[0]!.get('file') as File).arrayBuffer();
    expect(new Uint8Array(sent)).toEqual(WAV);
  });

  it.each([
    ['a data: URI without data', 'data:audio/wav', 'expected a data: URI with a comma'],
    ['wrong percents', 'data:audio/wav,%zz', 'expected percent-encoded bytes'],
    ['no base64', 'UklGR*?!', 'expected base64'],
    ['nothing', '', 'expected data, got none'],
  ])('is not sent %s', async (_, file, message) => {
    const { service, paths } = server(() => Response.json({ text: 'x' }));
    await expect(service.transcribe({ file })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      param: 'file',
      message: `file: ${message}`,
    });
    expect(paths).toEqual([]);
  });

  it('gets no field for an empty list', async () => {
    const { service, forms } = server(() => Response.json({ text: 'x' }));
    await service.transcribe({ file: WAV, timestamp_granularities: [], include: [] });
    expect([...forms[0]!.keys()]).toEqual(['file']);
  });

  it('answers for a pool, beside a server that cannot be reached', async () => {
    const fetch = () => Promise.reject(new TypeError('down'));
    const down = connect({ baseUrl: 'http://down', fetch, maxRetries: 0 });
    const { service, paths } = server(() =>
      events(delta('Hello'), { type: 'transcript.text.done', text: 'Hello' }),
    );
    const pool = createPool([down, service]);
    for (let i = 0; i < 2; i++) {
      const stream = await pool.transcribe({ file: WAV, stream: true });
      expect((await read(stream)).at(-1)).toMatchObject({ type: 'transcript.text.done', text: 'Hello' });
    }
    expect(paths).toEqual(['/v1/audio/transcriptions', '/v1/audio/transcriptions']);
  });

  const delta = (text: string) => ({ type: 'transcript.text.delta', delta: text });
  it.each([
    ['events', [delta('Hello '), delta('there.'), { type: 'transcript.text.done', text: 'Hello there.' }]],
    [
      'chunks',
      [
        { choices: [{ delta: { content: 'Hello ' } }] },
        { choices: [{ delta: { content: 'there.' } }] },
        '[DONE]',
      ],
    ],
  ])('streams %s', async (_, data) => {
    const { service } = server(() => events(...data));
    const stream = await service.transcribe({ file: WAV, stream: true });
    expect(await read(stream)).toMatchObject([
      delta('Hello '),
      delta('there.'),
      { type: 'transcript.text.done', text: 'Hello there.', finish_reason: 'stop' },
    ]);
  });

  it('that cannot stream answers as a whole, in events', async () => {
    const { service } = server(() => Response.json({ text: 'Hello.' }));
    expect(await read(await service.transcribe({ file: WAV, stream: true }))).toMatchObject([
      delta('Hello.'),
      { type: 'transcript.text.done', text: 'Hello.' },
    ]);
  });

  it('has errors of its own', async () => {
    const refused = () =>
      Response.json({ error: { message: 'file: too short', code: 400 } }, { status: 400 });
    const { service, paths } = server(refused);
    await expect(service.transcribe({ file: WAV })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: 'file: too short',
    });
    expect(paths).toEqual(['/v1/audio/transcriptions']);
    await expect(service.transcribe({ file: WAV, language: 'x y' })).rejects.toMatchObject({
      param: 'language',
    });
    expect(paths).toHaveLength(1);
  });

  it('says what of a request it cannot do', async () => {
    const error = { message: 'language: not known', code: 'UNSUPPORTED', param: 'language' };
    const { service, paths } = server(() => Response.json({ error }, { status: 400 }));
    await expect(service.transcribe({ file: WAV, language: 'tlh' })).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      param: 'language',
    });
    expect(paths).toEqual(['/v1/audio/transcriptions']);
  });
});

it('a server without the endpoint is asked for it once, then by a chat', async () => {
  const asked: string[] = [];
  const fetch = async (url: string | URL | Request, init?: RequestInit): Promise<Response> => {
    asked.push(new URL(String(url)).pathname);
    if (!asked.at(-1)!.endsWith('/chat/completions')) return new Response('File Not Found', { status: 404 });
    expect(String(init!.body)).toContain('input_audio');
    const message = { role: 'assistant', content: 'Hello.' };
    const usage = { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 };
    return Response.json({ choices: [{ index: 0, message, finish_reason: 'stop' }], usage });
  };
  const service = connect({ baseUrl: 'http://llama:8080', fetch });
  expect(await service.transcribe({ file: WAV })).toMatchObject({
    text: 'Hello.',
    usage: { input_tokens: 9 },
  });
  await service.transcribe({ file: WAV });
  const chat = '/v1/chat/completions';
  expect(asked).toEqual(['/v1/audio/transcriptions', chat, chat]);
});

it("this library's own server takes the fields, and tells its counts", async () => {
  const { handler, service } = openHandler({}, { pieces: ['Hello ', 'there'] });
  const fetch = async (url: string | URL | Request, init?: RequestInit) => handler(new Request(url, init));
  const remote = connect({ baseUrl: 'http://localhost', fetch });
  const whole = await remote.transcribe({
    file: WAV,
    seed: 3,
    top_p: 0.5,
    max_completion_tokens: 7,
    timeout_ms: 9000,
  });
  expect(whole).toMatchObject({ text: 'Hello there', usage: { type: 'tokens' } });
  expect(service.calls).toEqual(['createCompletion']);
  await expect(remote.transcribe({ file: WAV, top_p: 5 })).rejects.toMatchObject({ param: 'top_p' });
  const streamed = await read(await remote.transcribe({ file: WAV, stream: true }));
  expect(streamed.at(-1)).toMatchObject({ type: 'transcript.text.done', text: 'Hello there' });
});
