/** The backend contract on the GGUF and the ONNX backend. */
import path from 'node:path';
import { afterAll, describe } from 'vitest';
import { grammarAddon, loadAddon } from '../../src/engine/native/index.ts';
import { isGguf, type LoadedModel, loadGguf } from '../../src/models/formats/index.ts';
import { loadOnnx } from '../../src/onnx/model.ts';
import { CHECKPOINT_FILES } from '../../src/rl/checkpoint-files.ts';
import { openTrainer } from '../../src/rl/trainer.ts';
import { compileConstraint, constraintHandle } from '../../src/structured/index.ts';
import { closeAll, EMBEDDED, modelOf, temporaryFolder, whyNoOnnx } from '../models/formats/engines.ts';
import { randomAdapter } from '../rl/random-adapter.ts';
import { normals } from '../rl/tiny-model.ts';
import { backendContract } from './backend-contract.ts';
import { CONTRACT_LIMITS, type Opened } from './backend-driver.ts';

afterAll(closeAll);

async function open(model: LoadedModel, isKvUnified: boolean, adapter: string | null): Promise<Opened> {
  const { Sampler, SamplerPlan } = loadAddon();
  const backend = await model.createBackend({ ...CONTRACT_LIMITS, isKvUnified });
  const { vocabSize } = backend;
  return {
    backend,
    sampler: ({ allowed, ...options } = {}) => {
      const mask = new Uint32Array(Math.ceil(vocabSize / 32));
      for (const id of allowed ?? []) mask[id >> 5]! |= 1 << (id & 31);
      const plan = { vocabSize, temperature: 0, ...options, ...(allowed ? { allowed: mask } : {}) };
      return new Sampler(new SamplerPlan(plan), 0n);
    },
    matcher: async (texts) => {
      const spec = { regex: texts.map((text) => `(${text})`).join('|') };
      const constraint = await compileConstraint(spec, await model.vocabulary());
      return grammarAddon().createMatcher(constraintHandle(constraint));
    },
    textOf: (ids) => Buffer.concat(ids.map((id) => model.tokenizer.bytesOf(id))).toString(),
    digits: 2,
    forcesTokens: isGguf(model),
    adapter,
    close: async () => {
      await backend.close();
      await model.close();
    },
  };
}

/** A random adapter of the embedded model. */
async function makeAdapter(): Promise<string> {
  const normal = normals(3);
  const folder = path.join(temporaryFolder(), 'adapter');
  await using trainer = await openTrainer({ model: EMBEDDED, gpu: false, threads: 1 });
  await trainer.loadAdapter(randomAdapter(trainer, normal));
  await trainer.save(folder);
  return path.join(folder, CHECKPOINT_FILES.gguf);
}

for (const isKvUnified of [true, false])
  backendContract(`GGUF (unified KV cache: ${isKvUnified})`, async () => {
    const adapter = await makeAdapter();
    return await open(await loadGguf({ path: EMBEDDED, gpu: false, cacheType: 'f32' }), isKvUnified, adapter);
  });

describe.skipIf(whyNoOnnx() !== null)('with onnxruntime', () => {
  for (const graph of ['ONNX, padded on the left', 'ONNX, no position_ids'] as const)
    backendContract(graph, async () => {
      const model = await loadOnnx({ path: modelOf(graph), gpu: false, threads: 1 });
      return await open(model, false, null);
    });
});
