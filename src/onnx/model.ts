/** A folder with ONNX graphs -> a model and a backend. Graphs run on a worker thread; the addon samples the rows. */
import fs from 'node:fs';
import path from 'node:path';
import type { Backend, ContextSettings } from '../engine/backend/index.ts';
import { finishEdits, hookedSamples } from '../engine/backend/index.ts';
import {
  defaultThreads,
  knowingErrors,
  loadAddon,
  openDecoder,
  openLibraries,
} from '../engine/native/index.ts';
import type { Tokenizer } from '../engine/tokenizer/index.ts';
import { OnpolicyError } from '../errors.ts';
import type { LoadedModel } from '../models/formats/index.ts';
import type { Gpu } from '../protocol/index.ts';
import { createVocabulary, type Vocabulary } from '../structured/index.ts';
import { ComputeThread } from './compute-thread.ts';
import { type ModelFolder, readFolder } from './folder.ts';
import type { Decoder } from './messages.ts';
import { unsupported } from './model-errors.ts';
import { chooseProviders } from './providers.ts';
import { createTokenizer } from './tokenizer.ts';
import { featuresOf, openProjector } from './vision.ts';
import type { DecoderMethods } from './worker.ts';

/** Models with fewer bytes of weights run on one thread, because threads would wait for each other longer than they compute. */
const TINY_BYTES = 40 * 2 ** 20;

type Thread = ComputeThread<DecoderMethods>;

/** Options for loading a model folder. */
export type OnnxOptions = {
  /** The folder, or a graph in it. */
  readonly path: string;
  readonly gpu: Gpu;
  /** CPU threads. Null: one per core, or one for a tiny model. */
  readonly threads: number | null;
  readonly signal?: AbortSignal;
};

/** Loads a folder. Fails with `MODEL_INVALID`, `MODEL_NOT_FOUND`, `UNSUPPORTED`, `NATIVE_UNAVAILABLE` or `ABORTED`. */
export async function loadOnnx(options: OnnxOptions): Promise<LoadedModel> {
  const folder = readFolder(options.path);
  const providers = await chooseProviders(options.gpu);
  const isTiny = isTinyFolder(folder);
  const settings = { threads: options.threads ?? defaultThreads(isTiny), providers };
  const thread: Thread = new ComputeThread('worker');
  try {
    const { file, sizes, vision, contextLength, chatTemplate, toolTemplate, defaults } = folder;
    const decoder = await thread.call(
      'open',
      { file, sizes, embeddings: vision?.embeddings ?? null },
      settings,
    );
    if (options.signal?.aborted) throw new OnpolicyError('ABORTED', `loading ${options.path} was aborted`);
    const tokenizer = await createTokenizer(folder, decoder.vocabSize);
    const numbers = decoder.cache.reduce((sum, { heads, size }) => sum + heads * size, 0);
    let vocabulary: Vocabulary | null = null;
    return {
      fingerprint: `onpolicy-onnx-${folder.name}-${path.basename(file, '.onnx')}`,
      files: folder.weightFiles,
      tokenizer,
      contextLength,
      chatTemplate,
      toolTemplate,
      defaults,
      kvBytesPerToken: numbers * (decoder.cacheType === 'float16' ? 2 : 4) * (decoder.fresh ? 1 : 2),
      state: { stateBytes: 0, takesBack: false, checkpointSize: 0 },
      experts: null,
      supportsNonUnifiedKv: true,
      supportsUnifiedKv: false,
      prefersUnifiedKv: false,
      supportsSmallWindow: false,
      kernels: 'plain',
      attention: 'plain',
      isTiny,
      async vocabulary() {
        vocabulary ??= toVocabulary(tokenizer);
        return vocabulary;
      },
      async openVision() {
        if (!vision) return null;
        await openLibraries(false); // the decoder of picture files needs them
        await openDecoder();
        return await openProjector(folder.folder, vision, tokenizer, settings);
      },
      createBackend: (limits) => openBackend(thread, decoder, limits),
      async close() {
        await thread.close();
        await loadAddon().returnMemory();
      },
    };
  } catch (error) {
    await thread.close();
    throw error;
  }
}

/** Returns true if several threads would only wait for each other. */
export function isTinyFolder(folder: ModelFolder): boolean {
  return weightBytes(folder) < TINY_BYTES;
}

/** Returns the bytes of a folder's weights. */
export function weightBytes({ weightFiles }: ModelFolder): number {
  return weightFiles.reduce((sum, file) => sum + fs.statSync(file).size, 0);
}

function toVocabulary({ vocabSize, endIds, bytesOf, isSpecial }: Tokenizer): Vocabulary {
  const ids = Array.from({ length: vocabSize }, (_, id) => id);
  return createVocabulary({
    tokens: ids.map(bytesOf),
    eosTokenIds: [...endIds],
    specialTokenIds: ids.filter(isSpecial),
  });
}

async function openBackend(thread: Thread, decoder: Decoder, limits: ContextSettings): Promise<Backend> {
  const { vocabSize } = decoder;
  const { slotCount, threads } = limits;
  const outputRows = Math.max(limits.maxOutputs, slotCount);
  const shared = new SharedArrayBuffer(4 * outputRows * vocabSize);
  const abort = new Int32Array(new SharedArrayBuffer(4));
  await thread.call('start', { slotCount, logits: shared, abort: abort.buffer });
  const logits = new Float32Array(shared);
  const sampler = new (loadAddon().RowSampler)(vocabSize, threads);
  const tensors = decoder.cache.map(({ past, heads, size }) => `${past} ${heads}x${size}`);
  const refuse = async (what: string): Promise<never> => {
    throw unsupported(`${what} is for GGUF models, an ONNX graph takes none`);
  };
  return {
    vocabSize,
    kvTokens: limits.kvTokens,
    batchTokens: limits.batchTokens,
    outputRows,
    slotCount,
    rollbackTokens: Infinity,
    draftHead: null,
    windowTokens: 0,
    savedWindow: 0,
    rowTile: 1,
    threads,
    isKvUnified: false,
    cacheShape: `onnx ${decoder.cacheType} ${tensors.join(' ')}`,
    async step({ memoryEdits, tokens, positions, sequences, samplers, matchers, drafts, ...step }) {
      const rowOf = new Map<number, number>(); // token -> row of the logits
      const place = (token: number): number => {
        if (!rowOf.has(token)) rowOf.set(token, rowOf.size);
        return rowOf.get(token)!;
      };
      const sampleRows = step.sampleRows.map(place);
      const scoreRows = step.scoreRows.map((value, i) => (i % 3 === 0 ? place(value) : value));
      Atomics.store(abort, 0, 0);
      const media = (step.media ?? []).map(({ at, count, rows, first }) => {
        const { values, size } = featuresOf(rows);
        return { at, count, values: values.subarray(first * size, (first + count) * size) };
      });
      const rows = Int32Array.from(rowOf.keys());
      await thread.call('step', { memoryEdits, tokens, positions, sequences, rows, media });
      return await knowingErrors(async () => {
        const result = await sampler.sample({
          logits,
          sampleRows,
          samplers,
          ...(matchers ? { matchers } : {}),
          ...(drafts ? { drafts } : {}),
          ...hookedSamples(step.rowEdits),
          scoreRows,
        });
        return await finishEdits(sampler, step.rowEdits, result);
      });
    },
    loadAdapter: (file) => refuse(`the adapter ${file}`),
    mixAdapters: () => refuse('a mix of adapters'),
    attachHead: () => refuse('an EAGLE-3 file'),
    async freeAdapter() {},
    async detachHead() {},
    abortStep: () => void Atomics.store(abort, 0, 1),
    saveCheckpoint: async () => 0, // its caches can be cut at any token
    saveSlot: (memoryEdits, slot) => thread.call('save', memoryEdits, slot),
    async loadSlot(memoryEdits, slot, state) {
      if (!(await thread.call('load', memoryEdits, slot, state)))
        throw Object.assign(new Error('the saved cache does not fit into this context'), { code: 'KV_FULL' });
    },
    close: () => thread.close(),
  };
}
