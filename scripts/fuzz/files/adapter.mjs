// A GGUF LoRA file -> what this library does with it: answered with, merged, exported for PEFT, read by a trainer.
import fs from 'node:fs';
import path from 'node:path';
import { createRuntime, OnpolicyError } from '../../../dist/index.js';
import { openTrainer } from '../../../dist/rl/public.js';
import { bytesOf, decode, STRING } from './gguf.mjs';
import { tinyModel } from './models.mjs';
import { randomFrom } from './random.mjs';

const RANK = 32;
const FURTHER_KEYS = ['adapter.type', 'adapter.lora.alpha', 'adapter.alora.invocation_tokens', 'adapter.lora.task_name', 'general.type', 'general.name',
  'general.architecture', 'split.count', 'split.no']; // biome-ignore format: a table
const TEXTS = ['', 'lora', 'adapter', 'model', 'control_vector', 'llama', 'qwen3moe', 'gemma3', 'xyz'];
/** Models to adapt: one with an output matrix, one with experts, and one whose embeddings are also its output matrix. */
const MODELS = ['llama', 'qwen3moe', 'gemma3'];
const MATRIX = /^(blk\.\d+\.(attn_(q|k|v|output)|ffn_(gate|up|down)(_exps)?)|output|token_embd)\.weight$/;

const LOOKED_UP = 'token_embd.weight';

const text = (value) => ({ type: STRING, items: [Buffer.from(value)] });
const float = (value) => ({ type: 6, items: [Buffer.from(Float32Array.of(value).buffer)] });

/** Factors of every matrix, in F32, F16 and Q8_0 in turn. */
function adapterOf(architecture, { tensors }) {
  const random = randomFrom(5);
  const isTied = !tensors.some(({ name }) => name === 'output.weight');
  const factors = tensors
    .filter(({ name }) => MATRIX.test(name) && !(isTied && name === LOOKED_UP))
    .flatMap(({ name, dims: [width, rows, ...experts] }, i) => {
      const isLookedUp = name === LOOKED_UP;
      const rank = BigInt(RANK);
      const shapes = isLookedUp
        ? { a: [rank, rows], b: [rank, width] }
        : { a: [width, rank, ...experts], b: [rank, rows, ...experts] };
      return Object.entries(shapes).map(([factor, dims]) => {
        const tensor = { name: `${name}.lora_${factor}`, dims, type: isLookedUp ? 0 : [0, 1, 8][i % 3] };
        tensor.data = Buffer.alloc(bytesOf(tensor));
        if (tensor.type === 0)
          for (let at = 0; at < tensor.data.length; at += 4)
            tensor.data.writeFloatLE(0.01 * random.normal(), at);
        return tensor;
      });
    });
  const keys = {
    'general.type': text('adapter'),
    'general.architecture': text(architecture),
    'adapter.type': text('lora'),
    'adapter.lora.alpha': float(16),
  };
  return {
    keys: Object.entries(keys).map(([name, value]) => ({ name, ...value })),
    tensors: factors,
    alignment: 32,
    furtherKeys: FURTHER_KEYS,
    texts: TEXTS,
  };
}

/** Undamaged files by name, as parts. */
export function bases() {
  return MODELS.map((name) => ({ name, parts: adapterOf(name, decode(tinyModel(name))) }));
}

let opened;

/** A runtime with all models, and a trainer of each. Their files lie in `folder`. */
async function open(folder) {
  const models = {};
  const trainers = {};
  for (const name of MODELS) {
    models[name] = path.join(folder, `${name}.gguf`);
    fs.writeFileSync(models[name], tinyModel(name));
    trainers[name] = await openTrainer({ model: models[name], rank: RANK, gpu: false, threads: 1 });
  }
  const runtime = await createRuntime({
    models,
    gpu: false,
    threads: 1,
    contextSize: 64,
    maxSequences: 2,
    home: path.join(folder, 'home'),
  });
  return { runtime, trainers };
}

/** Gives the errors that were thrown, in order. */
export async function use(file, name) {
  const folder = path.dirname(file);
  opened ??= open(folder);
  const { runtime, trainers } = await opened;
  const errors = [];
  const attempt = async (work) => {
    try {
      await work();
    } catch (error) {
      errors.push(error);
    }
  };
  const adapters = [{ file }];
  await attempt(() =>
    runtime.createTextCompletion({ model: name, prompt: 'the', max_tokens: 2, temperature: 0, adapters }),
  );
  const to = path.join(folder, 'merged');
  // These take fewer: no factors of embeddings, those of layers that have a name in PEFT, those that are trained.
  const narrow = [
    () => runtime.models.export({ model: name, adapters, to: `${to}.gguf`, overwrite: true }),
    () => runtime.models.export({ model: name, adapters, to, format: 'peft', overwrite: true }),
    () => trainers[name].loadAdapter(file),
  ];
  for (const work of narrow)
    await work().catch((error) => {
      if (!(error instanceof OnpolicyError)) errors.push(error);
    });
  return errors;
}
