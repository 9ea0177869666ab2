// A projector file -> what this library does with it: loaded beside its model, asked about a picture or a sound.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { createRuntime } from '../../../dist/index.js';
import { decode } from './gguf.mjs';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const media = path.join(root, 'test/golden/media');
const PAIRS = Object.fromEntries([
  ...['mlp', 'idefics3', 'gemma3', 'qwen2vl', 'qwen2a'].map((kind) => [
    kind,
    [path.join(media, kind, 'text.gguf'), path.join(media, kind, 'mmproj.gguf')],
  ]),
  ['janus_pro', ['onpolicy-seeing.gguf', 'mmproj-onpolicy-seeing.gguf'].map((name) => path.join(root, 'models/seeing', name))],
]); // biome-ignore format: a table
/** All kinds that the decoder knows, and texts that are none. */
const KINDS = ['mlp', 'ldp', 'ldpv2', 'resampler', 'adapter', 'qwen2vl_merger', 'qwen2.5vl_merger', 'qwen3vl_merger', 'step3vl', 'gemma3',
  'gemma3nv', 'gemma3na', 'gemma4v', 'gemma4a', 'gemma4uv', 'gemma4ua', 'phi4', 'idefics3', 'pixtral', 'ultravox', 'internvl',
  'llama4', 'qwen2a', 'qwen3a', 'glma', 'qwen2.5o', 'voxtral', 'meralion', 'musicflamingo', 'lfm2', 'kimivl', 'paddleocr',
  'lightonocr', 'cogvlm', 'janus_pro', 'dots_ocr', 'dots3note_v', 'dots3note_a', 'deepseekocr', 'deepseekocr2', 'deepseek4v',
  'lfm2a', 'glm4v', 'youtuvl', 'yasa2', 'kimik25', 'nemotron_v2_vl', 'exaone4_5', 'hunyuanvl', 'minicpmv4_6', 'granite_speech',
  'mimovl', 'minimax_m3', 'granite4_vision', 'mimo_audio', 'parakeet', 'qwen3tts_spkenc', 'qwen3tts_gen', 'pockettts_spkenc',
  'pockettts_gen', 'muse-glimmer', '', 'xyz']; // biome-ignore format: a table
/** Keys that one kind or another reads. */
const FURTHER_KEYS = ['vision.attention.head_count_kv', 'vision.attention.head_dim', 'vision.projector.scale_factor', 'vision.spatial_merge_size',
  'vision.n_wa_pattern', 'vision.window_size', 'vision.preproc_image_size', 'vision.image_grid_pinpoints', 'vision.feature_layer',
  'vision.image_min_pixels', 'vision.image_max_pixels', 'vision.preproc_min_tiles', 'vision.preproc_max_tiles', 'vision.wa_layer_indexes',
  'vision.projector_type', 'audio.projector_type', 'audio.projector.stack_factor', 'audio.attention.head_count_kv', 'audio.attention.head_dim',
  'audio.feature_layer', 'has_gen_audio_encoder', 'has_audio_encoder', 'has_vision_encoder', 'use_silu', 'use_gelu', 'minicpmv_version',
  'minicpmv_query_num', 'vision.mm_patch_merge_type', 'audio.num_mel_bins', 'audio.chunk_size'].map((key) => `clip.${key}`); // biome-ignore format: a table

const image = `data:image/png;base64,${fs.readFileSync(path.join(media, 'files/wide.png')).toString('base64')}`;
const sound = fs.readFileSync(path.join(media, 'files/tone.wav')).toString('base64');

/** Undamaged files by name, as parts. */
export function bases() {
  return Object.entries(PAIRS).map(([name, [, file]]) => ({
    name,
    parts: { ...decode(fs.readFileSync(file)), furtherKeys: FURTHER_KEYS, texts: KINDS },
  }));
}

/** Gives the errors that were thrown, in order. */
export async function use(file, name) {
  const errors = [];
  const attempt = async (work) => {
    try {
      return await work();
    } catch (error) {
      errors.push(error);
    }
  };
  const runtime = await attempt(() =>
    createRuntime({
      model: { path: PAIRS[name][0], mmproj: file },
      gpu: false,
      threads: 1,
      maxSequences: 1,
      home: `${file}.home`,
    }),
  );
  if (!runtime) return errors;
  const part =
    name === 'qwen2a'
      ? { type: 'input_audio', input_audio: { data: sound, format: 'wav' } }
      : { type: 'image_url', image_url: { url: image } };
  await attempt(() =>
    runtime.createCompletion({
      messages: [{ role: 'user', content: [part, { type: 'text', text: 'a' }] }],
      max_completion_tokens: 1,
      stream: false,
    }),
  );
  await attempt(() => runtime.close());
  return errors;
}
