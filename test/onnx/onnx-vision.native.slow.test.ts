/** ONNX folders that see: what a picture becomes, and the answers, as plain arithmetic and the graphs alone have them. */
import fs from 'node:fs';
import path from 'node:path';
import { AutoTokenizer } from '@huggingface/transformers';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ChatCompletion, ChatCompletionRequest } from '../../src/protocol/index.ts';
import type { Runtime } from '../../src/runtime/runtime.ts';
import { closeAll, makeOnnx, openRuntime, temporaryFolder, whyNoOnnx } from '../models/formats/engines.ts';
import { onnxScript, seeingScript } from '../scripts/scripts.ts';

const { EYES, eyeWeights, PIXELS } = await onnxScript('vision.mjs');
const { encodePng } = await seeingScript('png.mjs');

afterAll(closeAll);

const KINDS = {
  llava: ['--layout', 'torch', '--vision', 'llava'],
  'llava, merged': ['--layout', 'merged', '--vision', 'llava'],
  idefics3: ['--layout', 'torch', '--vision', 'idefics3'],
} as const;
type Kind = keyof typeof KINDS;

const WIDTH = 128; // of the embedded model
const WITHIN = 5e-4;
const IMAGE = 961;
const QUESTION = 'What is in the picture?';

function folderOf(kind: Kind): string {
  const out = path.join(temporaryFolder(), `sees-${kind.replaceAll(/\W+/g, '-')}`);
  if (!fs.existsSync(out)) makeOnnx('--out', out, ...KINDS[kind]);
  return out;
}

/** Pixels of a picture, (height, width, 3). */
type Picture = { readonly width: number; readonly height: number; readonly pixels: Uint8Array };

/** Other pixels for each number. */
function noise(number: number): Picture {
  const { side } = EYES;
  let state = number + 1;
  const pixels = Uint8Array.from({ length: 3 * side * side }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state >>> 24;
  });
  return { width: side, height: side, pixels };
}

/** One colour: of any size it is the same picture. */
function plain(width: number, height: number, color: readonly number[]): Picture {
  return { width, height, pixels: Uint8Array.from({ length: 3 * width * height }, (_, i) => color[i % 3]!) };
}

const image = ({ width, height, pixels }: Picture) => ({
  type: 'image_url',
  image_url: { url: `data:image/png;base64,${encodePng(pixels, width, height).toString('base64')}` },
});

/** The rows of the first tile of a picture, in 64 bits. */
function rowsOf({ width, pixels }: Picture): Float32Array {
  const { side, patch, channels, rows } = EYES;
  const { kernel, places, head } = eyeWeights(WIDTH);
  const value = (c: number, y: number, x: number): number =>
    (pixels[3 * (y * width + x) + c]! / 255 - PIXELS.image_mean[c]!) / PIXELS.image_std[c]!;
  const result = new Float32Array(rows * WIDTH);
  for (let row = 0; row < rows; row++) {
    const [top, left] = [Math.floor(row / (side / patch)) * patch, (row % (side / patch)) * patch];
    const seen = Array.from({ length: channels }, (_, channel) => {
      let sum = places[row * channels + channel]!;
      for (let c = 0; c < 3; c++)
        for (let y = 0; y < patch; y++)
          for (let x = 0; x < patch; x++)
            sum += kernel[((channel * 3 + c) * patch + y) * patch + x]! * value(c, top + y, left + x);
      return Math.tanh(sum);
    });
    for (let i = 0; i < WIDTH; i++)
      result[row * WIDTH + i] = seen.reduce((sum, one, channel) => sum + one * head[channel * WIDTH + i]!, 0);
  }
  return result;
}

/** The graphs of a folder alone, each prompt in one run without a cache. */
async function openBare(folder: string) {
  const open = (name: string) =>
    InferenceSession.create(path.join(folder, 'onnx', name), { intraOpNumThreads: 1 });
  const isMerged = fs.existsSync(path.join(folder, 'onnx', 'decoder_model_merged.onnx'));
  const decoder = await open(isMerged ? 'decoder_model_merged.onnx' : 'model.onnx');
  const embed = await open('embed_tokens.onnx');
  const tokenizer = await AutoTokenizer.from_pretrained(folder, { local_files_only: true });
  const int64 = (values: readonly number[]) =>
    new Tensor('int64', BigInt64Array.from(values, BigInt), [1, values.length]);

  /** Log-probabilities of the next token. `isPlace`: whether the n-th image token stands for a row. */
  async function next(ids: readonly number[], rows: Float32Array, isPlace: (n: number) => boolean) {
    const made = (await embed.run({ input_ids: int64(ids) }))['inputs_embeds']!;
    const data = made.data as Float32Array;
    let [n, used] = [0, 0];
    for (const [at, id] of ids.entries())
      if (id === IMAGE && isPlace(n++)) data.set(rows.subarray(used * WIDTH, ++used * WIDTH), at * WIDTH);
    const feeds: Record<string, Tensor> = {};
    for (const input of decoder.inputMetadata)
      if (input.isTensor && input.name.startsWith('past'))
        feeds[input.name] = new Tensor('float32', new Float32Array(0), [
          1,
          Number(input.shape[1]),
          0,
          Number(input.shape[3]),
        ]);
    const positions = ids.map((_, i) => i);
    const all: Record<string, Tensor> = {
      inputs_embeds: made,
      attention_mask: int64(ids.map(() => 1)),
      position_ids: int64(positions),
      use_cache_branch: new Tensor('bool', [false], [1]),
    };
    for (const name of decoder.inputNames) feeds[name] ??= all[name]!;
    const { logits } = await decoder.run(feeds, ['logits']);
    const row = (logits!.data as Float32Array).slice(-Number(logits!.dims[2]));
    const most = Math.max(...row);
    const total = most + Math.log(row.reduce((sum, value) => sum + Math.exp(value - most), 0));
    return row.map((value) => value - total);
  }
  return { next, encode: (text: string) => tokenizer.encode(text, { add_special_tokens: false }) };
}

const ask = (runtime: Runtime, content: unknown, fields: Partial<ChatCompletionRequest> = {}) =>
  runtime.createCompletion({
    messages: [{ role: 'user', content }] as ChatCompletionRequest['messages'],
    temperature: 0,
    max_tokens: 10,
    ignore_eos: true,
    logprobs: true,
    return_token_ids: true,
    ...fields,
    stream: false,
  });
const about = (...parts: unknown[]) => [...parts, { type: 'text', text: QUESTION }];
const idsOf = ({ choices }: ChatCompletion) => choices.map(({ token_ids }) => token_ids);

describe.skipIf(whyNoOnnx() !== null).each(Object.keys(KINDS) as Kind[])('%s', (kind) => {
  const isTiled = kind === 'idefics3';
  let folder: string;
  let runtime: Runtime;
  let bare: Awaited<ReturnType<typeof openBare>>;
  beforeAll(async () => {
    folder = folderOf(kind);
    runtime = await openRuntime(folder, { maxSequences: 4 });
    bare = await openBare(folder);
  }, 120_000);

  const places = '<image>'.repeat(EYES.rows);
  const fake = '<fake_token_around_image>';
  const tile = (row: number, column: number) => `${fake}<row_${row}_col_${column}>${places}`;
  const tiles = `${tile(1, 1)}${tile(1, 2)}\n${tile(2, 1)}${tile(2, 2)}\n`;
  const written = isTiled ? `${tiles}\n${fake}<global-img>${places}${fake}` : places;
  const count = isTiled ? 5 : 1; // of tiles: four, and all of it
  /** If pictures are split into tiles, each picture has one colour, so that all its tiles are equal. */
  const some = (number: number): Picture =>
    isTiled ? plain(64, 64, [40 * number, 250 - 30 * number, 90]) : noise(number);
  const rowsOfTiles = (picture: Picture): number[] =>
    Array.from({ length: count }, () => [...rowsOf(picture)]).flat();
  const prompt = (content: string) => `<|im_start|>user\n${content}<|im_end|>\n<|im_start|>assistant\n`;

  /** Holds an answer to the graphs alone. */
  async function expectBare(
    answer: ChatCompletion,
    content: string,
    rows: Float32Array,
    isPlace: (n: number) => boolean = () => true,
  ): Promise<void> {
    const ids = bare.encode(prompt(content));
    expect(answer.usage.prompt_tokens).toBe(ids.length);
    const { token_ids: tokens, logprobs } = answer.choices[0]!;
    for (const [i, token] of tokens!.entries()) {
      const expected = await bare.next(ids, rows, isPlace);
      expect(Math.max(...expected) - expected[token]!).toBeLessThan(WITHIN);
      expect(Math.abs(logprobs!.content![i]!.logprob - expected[token]!)).toBeLessThan(WITHIN);
      ids.push(token);
    }
  }

  it.each<[string, Picture, Picture]>([
    ['a picture of the size that it is computed in', some(1), some(1)],
    [
      'a larger one',
      isTiled ? some(3) : plain(70, 70, [10, 200, 90]),
      isTiled ? some(3) : plain(32, 32, [10, 200, 90]),
    ],
  ])('answers about %s', async (_, given, computed) => {
    const answer = await ask(runtime, about(image(given)));
    expect(answer.usage.prompt_tokens_details!.media_tokens).toBe(count * EYES.rows);
    await expectBare(answer, `${written}${QUESTION}`, Float32Array.from(rowsOfTiles(computed)));
  });

  it('answers about two pictures in their order, and text that looks like their place', async () => {
    const content = [
      { type: 'text', text: 'This <image> is text. ' },
      image(some(1)),
      { type: 'text', text: ' and ' },
      image(some(2)),
      { type: 'text', text: QUESTION },
    ];
    const rows = Float32Array.from([some(1), some(2)].flatMap(rowsOfTiles));
    const text = `This <image> is text. ${written} and ${written}${QUESTION}`;
    const answer = await ask(runtime, content);
    expect(answer.usage.prompt_tokens_details!.media_tokens).toBe(2 * count * EYES.rows);
    await expectBare(answer, text, rows, (n) => n > 0);
    const answers = [await ask(runtime, about(image(some(1)))), await ask(runtime, about(image(some(2))))];
    const [one, other] = answers.map(({ choices }) => choices[0]!.logprobs!.content![0]!.logprob);
    expect(Math.abs(one! - other!)).toBeGreaterThan(2 * WITHIN);
  });

  it('gives the same answers in company, with choices and as a stream', async () => {
    const contents = [1, 2, 3, 4].map((number) => about(image(noise(number))));
    const alone: unknown[] = [];
    for (const [i, content] of contents.entries())
      alone.push(idsOf(await ask(runtime, content, { cache_salt: `alone ${i}` })));
    const together = await Promise.all(
      contents.map((content, i) => ask(runtime, content, { cache_salt: `together ${i}` })),
    );
    expect(together.map(idsOf)).toEqual(alone);
    const random = { temperature: 1, seed: 3 };
    const several = await ask(runtime, contents[0], { ...random, n: 2 });
    expect(idsOf(several)[0]).toEqual(idsOf(await ask(runtime, contents[0], random))[0]);
    const { choices } = together[0]!;
    let streamed = '';
    const messages = [{ role: 'user', content: contents[0] }] as ChatCompletionRequest['messages'];
    const request = { messages, temperature: 0, max_tokens: 10, ignore_eos: true, stream: true } as const;
    for await (const chunk of await runtime.createCompletion(request))
      streamed += chunk.choices[0]?.delta.content ?? '';
    expect(streamed).toBe(choices[0]!.message.content);
  });

  it('neither encodes nor computes the picture of an earlier turn again', async () => {
    const content = about(image(noise(9)));
    const first = await ask(runtime, content);
    const { encodes } = runtime.mediaStats();
    const messages = [
      { role: 'user', content },
      { role: 'assistant', content: first.choices[0]!.message.content },
      { role: 'user', content: 'And now?' },
    ] as ChatCompletionRequest['messages'];
    const second = await ask(runtime, '', { messages });
    expect(runtime.mediaStats().encodes).toBe(encodes);
    expect(second.usage.prompt_tokens_details!.cached_tokens).toBeGreaterThan(EYES.rows);
  });

  it('is aborted without a trace', async () => {
    const controller = new AbortController();
    const answers = [20, 21, 22].map((number) =>
      runtime.createCompletion(
        { messages: [{ role: 'user', content: about(image(noise(number))) }] as never },
        controller,
      ),
    );
    controller.abort();
    for (const answer of answers) await expect(answer).rejects.toMatchObject({ code: 'ABORTED' });
    await expect.poll(() => runtime.stats()).toMatchObject({ running: 0, waiting: 0 });
    await expect.poll(() => runtime.mediaStats().running).toBe(0);
  });

  it.each([
    [1, 1],
    [400, 1],
    [1, 400],
  ])('answers about %i x %i pixels, or says why not', async (width, height) => {
    const answer = ask(runtime, about(image(plain(width, height, [9, 9, 9]))));
    const [result] = await Promise.allSettled([answer]);
    if (result.status === 'fulfilled')
      expect(result.value.usage.prompt_tokens_details!.media_tokens).toBeGreaterThan(0);
    else expect(result.reason).toMatchObject({ code: 'INVALID_REQUEST', param: 'messages.0.content.0' });
    expect((await ask(runtime, QUESTION)).choices[0]!.token_ids).toHaveLength(10);
  });

  it('refuses a sound by the path of its part', async () => {
    const sound = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } };
    await expect(ask(runtime, about(sound))).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      param: 'messages.0.content.0',
    });
  });
});

describe.skipIf(whyNoOnnx() !== null)('an ONNX folder that sees', () => {
  type Change = (folder: string) => void;
  const without =
    (file: string): Change =>
    (folder) =>
      fs.rmSync(path.join(folder, file));
  const edit =
    (file: string, fields: object): Change =>
    (folder) => {
      const before = JSON.parse(fs.readFileSync(path.join(folder, file), 'utf8')) as object;
      fs.writeFileSync(path.join(folder, file), JSON.stringify({ ...before, ...fields }));
    };
  const copy =
    (from: string, to: string): Change =>
    (folder) =>
      fs.copyFileSync(path.join(folder, from), path.join(folder, to));

  it.each<[string, Change, string, string]>([
    ['no embed_tokens', without('onnx/embed_tokens.onnx'), 'MODEL_INVALID', 'embed_tokens.onnx'],
    ['no vision_encoder', without('onnx/vision_encoder.onnx'), 'MODEL_INVALID', 'vision_encoder.onnx'],
    ['no processor', without('preprocessor_config.json'), 'UNSUPPORTED', 'no known processor'],
    [
      'no place for pictures',
      edit('config.json', { image_token_id: null }),
      'MODEL_INVALID',
      'image_token_id',
    ],
    ['a token that is not there', edit('config.json', { image_token_id: 1000 }), 'MODEL_INVALID', '1000'],
    [
      'another processor',
      edit('preprocessor_config.json', { processor_class: 'Qwen2VLProcessor' }),
      'UNSUPPORTED',
      'Qwen2VLProcessor',
    ],
    [
      'ears',
      (folder) => fs.writeFileSync(path.join(folder, 'onnx/audio_encoder.onnx'), ''),
      'UNSUPPORTED',
      'audio input',
    ],
    [
      'an encoder of something else',
      copy('onnx/embed_tokens.onnx', 'onnx/vision_encoder.onnx'),
      'UNSUPPORTED',
      'input_ids',
    ],
  ])('with %s is refused by name', async (_, change, code, named) => {
    const folder = path.join(temporaryFolder(), `refused-${named.replaceAll(/\W/g, '-')}-${code}`);
    fs.cpSync(folderOf('llava'), folder, { recursive: true });
    change(folder);
    const runtime = await openRuntime(folder);
    await expect(ask(runtime, QUESTION)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(named),
    });
  });
});
