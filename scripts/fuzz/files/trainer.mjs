// A GGUF file of a text model -> what training does with it: rows computed forward and back, all weights, what is saved.
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { openFullTrainer, openTrainer } from '../../../dist/rl/public.js';
import { decode } from './gguf.mjs';
import { tinyModel } from './models.mjs';

const MODELS = ['llama', 'qwen3', 'gemma3', 'qwen3moe'];
const GOLDEN = fileURLToPath(new URL('../../../test/golden/training/tiny-qwen2.gguf', import.meta.url));
const FURTHER_KEYS = ['attention.head_count_kv', 'attention.key_length', 'attention.value_length', 'attention.sliding_window', 'attention.scale',
  'attention.sliding_window_pattern', 'attn_logit_softcapping', 'final_logit_softcapping', 'rope.dimension_count', 'rope.freq_base',
  'rope.freq_base_swa', 'rope.scaling.type', 'rope.scaling.factor', 'rope.scaling.attn_factor', 'rope.scale_linear', 'rope.scaling.finetuned',
  'expert_count', 'expert_used_count', 'expert_feed_forward_length', 'expert_shared_feed_forward_length', 'expert_weights_scale',
  'embedding_scale', 'residual_scale', 'logit_scale', 'context_length'].map((key) => `ARCH.${key}`); // biome-ignore format: a table
const TEXTS = [
  '',
  'llama',
  'qwen2',
  'qwen3',
  'qwen3moe',
  'gemma2',
  'gemma3',
  'smollm3',
  'granite',
  'granitemoe',
  'phi3',
  'linear',
  'none',
  'yarn',
  'xyz',
];

/** Undamaged files by name, as parts. */
export function bases() {
  const files = MODELS.map((name) => [name, tinyModel(name)]);
  return [...files, ['qwen2', fs.readFileSync(GOLDEN)]].map(([name, bytes]) => ({
    name,
    parts: { ...decode(bytes), furtherKeys: FURTHER_KEYS, texts: TEXTS },
  }));
}

const LENGTH = 8;
const ROW = {
  tokens: Int32Array.from({ length: LENGTH }, (_, i) => i + 3),
  positions: Int32Array.from({ length: LENGTH }, (_, i) => i),
  groupIds: new Int32Array(LENGTH),
  parentIds: new Int32Array(LENGTH).fill(-1),
  logitRows: Int32Array.from([3, 4, 5, 6]),
  targetTokens: Int32Array.from([7, 8, 9, 10]),
};
const WEIGHTS = Float32Array.from([0.1, -0.2, 0.3, 0.4]);

/** Gives the errors that were thrown, in order. */
export async function use(file) {
  const errors = [];
  const attempt = async (open, work) => {
    let trainer;
    try {
      trainer = await open();
      await work(trainer);
    } catch (error) {
      errors.push(error);
    }
    await trainer?.close();
  };
  for (const arithmetic of ['engine', 'exact'])
    await attempt(
      () => openTrainer({ model: file, rank: 2, gpu: false, threads: 1, arithmetic }),
      async (trainer) => {
        await trainer.forward(ROW);
        await trainer.backward(WEIGHTS);
        await trainer.step({ learningRate: 1e-3 });
        await trainer.save(`${file}.checkpoint`);
        await trainer.load(`${file}.checkpoint`);
      },
    );
  await attempt(
    () => openFullTrainer({ model: file, threads: 1 }),
    async (trainer) => {
      await trainer.addGradients(ROW, WEIGHTS);
      await trainer.step({ learningRate: 1e-3 });
      await trainer.save(`${file}.saved`);
    },
  );
  fs.rmSync(`${file}.checkpoint`, { recursive: true, force: true });
  fs.rmSync(`${file}.saved`, { force: true });
  return errors;
}
