/** Requests for transcripts -> what the model is asked, and its answers in their forms. */
import { describe, expect, it } from 'vitest';
import { OnpolicyError } from '../../../../src/errors.ts';
import type {
  ChatCompletion,
  ChatCompletionRequest,
  TranscriptionEvent,
} from '../../../../src/protocol/index.ts';
import { ChatCompletionStream } from '../../../../src/protocol/service/index.ts';
import { transcribe } from '../../../../src/serve/wires/index.ts';
import { joint } from '../../../../src/serve/wires/transcription/join-texts.ts';

const USAGE = {
  prompt_tokens: 30,
  completion_tokens: 4,
  total_tokens: 34,
  prompt_tokens_details: { cached_tokens: 0, media_tokens: 25 },
};
const COUNTED = {
  type: 'tokens',
  input_tokens: 30,
  output_tokens: 4,
  total_tokens: 34,
  input_token_details: { audio_tokens: 25, text_tokens: 5 },
};

/** Keeps what it is asked, and says these pieces. */
function service(pieces = [' Hello', ' there. '], finish_reason: 'stop' | 'length' = 'stop') {
  const asked: ChatCompletionRequest[] = [];
  async function* chunks() {
    for (const content of pieces) yield { choices: [{ delta: { content }, finish_reason: null }] };
    yield { choices: [{ delta: {}, finish_reason }] };
    yield { choices: [], usage: USAGE };
  }
  const createCompletion = async (request: ChatCompletionRequest): Promise<unknown> => {
    asked.push(request);
    if (request.stream) return new ChatCompletionStream(chunks() as never, () => {});
    const logprobs = { content: [{ token: 'a', logprob: -1, bytes: null, top_logprobs: [] }] };
    const choice = {
      message: { content: pieces.join('') },
      finish_reason,
      logprobs: request.logprobs ? logprobs : null,
    };
    return { choices: [choice], usage: USAGE } as unknown as ChatCompletion;
  };
  return { asked, createCompletion: createCompletion as never };
}

describe('a request', () => {
  it.each<[string, object, object, RegExp]>([
    ['alone', {}, { temperature: 0 }, /^Write down word for word what is said, and nothing else\.$/],
    ['with a language', { language: 'pt-BR' }, {}, /what is said in Brazilian Portuguese, and/],
    ['with hints', { prompt: 'Omar, Delhi' }, {}, /do not repeat them: Omar, Delhi$/],
    [
      'with settings',
      {
        model: 'm',
        temperature: 0.5,
        seed: 7,
        top_p: 0.9,
        max_completion_tokens: 9,
        keep_alive: 5,
        user: 'x',
      },
      { model: 'm', temperature: 0.5, seed: 7, top_p: 0.9, max_completion_tokens: 9, keep_alive: 5 },
      /./,
    ],
    [
      'with nulls',
      { model: null, language: null, prompt: null, stream: null, response_format: null },
      {},
      /./,
    ],
  ])('%s becomes a chat about the sound', async (_, given, fields, text) => {
    const { asked, createCompletion } = service();
    await transcribe({ createCompletion }, { file: 'UklGRg==', ...given });
    expect(asked[0]).toMatchObject({
      temperature: 0,
      ...fields,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'input_audio', input_audio: { data: 'UklGRg==' } },
            { type: 'text', text: expect.stringMatching(text) },
          ],
        },
      ],
    });
    expect(asked[0]).not.toHaveProperty('user');
  });

  it.each<[object, string, string]>([
    [{}, 'INVALID_REQUEST', 'file: this field is required'],
    [{ file: 5 }, 'INVALID_REQUEST', 'file: expected base64 text, a data: URI or bytes'],
    [
      { file: 'a', language: 'not a language' },
      'INVALID_REQUEST',
      'language: expected a language such as en or pt-BR',
    ],
    [
      { file: 'a', language: 'en-ab-cd-ab' },
      'INVALID_REQUEST',
      'language: expected a language such as en or pt-BR',
    ],
    [{ file: 'a', response_format: 'xml' }, 'INVALID_REQUEST', 'response_format: expected'],
    [{ file: 'a', response_format: 'srt' }, 'UNSUPPORTED', 'response_format: srt needs times'],
    [{ file: 'a', response_format: 'vtt' }, 'UNSUPPORTED', 'response_format: vtt needs times'],
    [
      { file: 'a', response_format: 'verbose_json' },
      'UNSUPPORTED',
      'response_format: verbose_json needs times',
    ],
    [{ file: 'a', timestamp_granularities: ['word'] }, 'UNSUPPORTED', 'timestamp_granularities: '],
    [{ file: 'a', stream: true, include: ['logprobs'] }, 'UNSUPPORTED', 'include: not in a stream'],
    [{ file: 'a', include: ['everything'] }, 'INVALID_REQUEST', 'include.0: expected'],
    [{ file: 'a', temperature: -1 }, 'INVALID_REQUEST', 'temperature: expected'],
    [{ file: 'a', n: 2 }, 'INVALID_REQUEST', 'n: not a field'],
  ])('%j is refused before anything runs', async (request, code, message) => {
    const { asked, createCompletion } = service();
    await expect(transcribe({ createCompletion }, request)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(message),
    });
    expect(asked).toEqual([]);
  });

  it('is what errors of the chat are about', async () => {
    const field = 'messages.0.content.0.input_audio.data';
    const createCompletion = (() =>
      Promise.reject(
        new OnpolicyError('INVALID_REQUEST', `${field}: the sound is damaged`, { param: field }),
      )) as never;
    await expect(transcribe({ createCompletion }, { file: 'a' })).rejects.toMatchObject({
      message: 'file: the sound is damaged',
      param: 'file',
    });
  });
});

describe('an answer', () => {
  const file = new Uint8Array(4);

  it('is an object, or with response_format text a text', async () => {
    expect(await transcribe(service(), { file })).toEqual({
      text: 'Hello there.',
      usage: COUNTED,
      finish_reason: 'stop',
    });
    expect(await transcribe(service(), { file, response_format: 'text' })).toBe('Hello there.');
  });

  it('says where it was cut, and its log-probabilities', async () => {
    const cut = service([' Hello'], 'length');
    expect(await transcribe(cut, { file, include: ['logprobs'] })).toMatchObject({
      finish_reason: 'length',
      logprobs: [{ token: 'a', logprob: -1, bytes: [] }],
    });
  });

  const windows = (pieces: string[][], reason: 'stop' | 'length' = 'stop') => {
    const asked: unknown[] = [];
    let next = 0;
    const createCompletion = (request: ChatCompletionRequest): unknown => {
      expect(request).not.toHaveProperty('stream_options'); // each is answered as a whole
      const [{ content } = { content: null }] = request.messages as unknown as [{ content: unknown }];
      asked.push((content as { input_audio: { data: unknown } }[])[0]!.input_audio.data);
      return (service(pieces[next++]!, reason).createCompletion as (given: unknown) => unknown)(request);
    };
    const soundWindows = async () => pieces.map((_, i) => Uint8Array.of(i));
    return { asked, hearing: { createCompletion: createCompletion as never, soundWindows } };
  };
  const LONG = [['we took the boat to the isl'], ['The boat to the island, and th'], ['and then home']];

  it('to a long sound is joined of windows', async () => {
    const { asked, hearing } = windows(LONG, 'length');
    expect(await transcribe(hearing, { file, chunking_strategy: 'auto' })).toEqual({
      text: 'we took the boat to the island, and th and then home',
      usage: {
        type: 'tokens',
        input_tokens: 90,
        output_tokens: 12,
        total_tokens: 102,
        input_token_details: { audio_tokens: 75, text_tokens: 15 },
      },
      finish_reason: 'length',
    });
    expect(asked).toEqual([0, 1, 2].map((i) => Uint8Array.of(i)));
    const events: TranscriptionEvent[] = [];
    const stream = await transcribe(windows(LONG).hearing, { file, chunking_strategy: 'auto', stream: true });
    for await (const event of stream as AsyncIterable<TranscriptionEvent>) events.push(event);
    expect(events.slice(0, -1)).toEqual(
      ['we took the boat to the', ' island, and th and then home'].map((delta) => ({
        type: 'transcript.text.delta',
        delta,
      })),
    );
    expect(events.at(-1)).toMatchObject({ type: 'transcript.text.done', finish_reason: 'stop' });
  });

  it('to one that does not fit into the context is joined of windows, too, if there are several', async () => {
    const full = new OnpolicyError('CONTEXT_OVERFLOW', 'messages: too long', { param: 'messages' });
    let isFirst = true;
    const of = (hearing: ReturnType<typeof windows>['hearing']) => ({
      ...hearing,
      createCompletion: ((request: never) => {
        if (!isFirst) return (hearing.createCompletion as (asked: never) => unknown)(request);
        isFirst = false;
        return Promise.reject(full);
      }) as never,
    });
    expect(await transcribe(of(windows(LONG).hearing), { file, response_format: 'text' })).toMatch(
      /^we took .* home$/,
    );
    isFirst = true;
    await expect(transcribe(of(windows([['x']]).hearing), { file })).rejects.toMatchObject({
      code: 'CONTEXT_OVERFLOW',
      param: 'file',
    });
    isFirst = true;
    await expect(
      transcribe(of(windows(LONG).hearing), { file, include: ['logprobs'] }),
    ).rejects.toMatchObject({ code: 'UNSUPPORTED', param: 'include' });
  });

  it.each<[string, string, string]>([
    ['the quick brown fox jum', 'quick brown fox jumps over', 'the quick brown fox| jumps over'],
    ['Hello there.', 'General Kenobi', 'Hello there.|General Kenobi'],
    ['we went, and then we', 'And then, we left', 'we went, and then we| left'],
    ['by the sea', 'the sea', 'by the sea|'],
    ['one', 'one two', 'one|one two'], // one word may be chance
    ['今天天气很好我们去公', '天气很好我们去公园玩吧', '今天天气很好我们去|公园玩吧'],
    ['', 'all', '|all'],
    ['all', '', 'all|'],
  ])('%j and %j meet where they share words', (before, after, expected) => {
    const { end, start } = joint(before, after);
    expect(`${before.slice(0, end)}|${after.slice(start)}`).toBe(expected);
  });

  it('comes in events', async () => {
    const events: TranscriptionEvent[] = [];
    const stream = await transcribe(service([' ', ' Hello', '', ' there. ']), { file, stream: true });
    for await (const event of stream as AsyncIterable<TranscriptionEvent>) events.push(event);
    expect(events).toEqual([
      { type: 'transcript.text.delta', delta: 'Hello' },
      { type: 'transcript.text.delta', delta: ' there. ' },
      { type: 'transcript.text.done', text: 'Hello there.', usage: COUNTED, finish_reason: 'stop' },
    ]);
  });
});
