/** A folder with ONNX graphs -> a model and a backend. Graphs run on a worker thread; the addon samples the rows. */
import fs from 'node:fs';
import path from 'node:path';
import { errorAt, fromNative, OnpolicyError } from '../../errors.ts';
import {
  defaultThreads,
  loadAddon,
  type NativeProjector,
  type NativeRowSampler,
  type Notice,
  openDecoder,
  openGrammar,
  openLibraries,
} from '../../native/index.ts';
import type { Gpu } from '../../protocol/index.ts';
import type { SamplingDefaults } from '../../sampling/index.ts';
import { createVocabulary, type Vocabulary } from '../../structured/index.ts';
import type { Tokenizer } from '../../tokenizer/index.ts';
import type { Backend, Step, StepResult } from '../backend.ts';
import type { ContextLimits, LoadedModel } from '../model.ts';
import { finishEdits, hookedSamples } from '../row-edits.ts';
import { ComputeThread } from './compute-thread.ts';
import { type ModelFolder, readFolder } from './folder.ts';
import type { ComputeValue, Decoder, Request } from './messages.ts';
import { chooseProviders } from './providers.ts';
import type { SessionSettings } from './session.ts';
import { createTokenizer } from './tokenizer.ts';
import { featuresOf, OnnxProjector } from './vision.ts';

/** Weights below this many bytes: threads would wait for each other longer than they compute. */
const TINY_BYTES = 40 * 2 ** 20;

type Thread = ComputeThread<Request, ComputeValue>;

/** How to load a model folder. */
export type OnnxOptions = {
  /** The folder, or a graph in it. */
  readonly path: string;
  readonly gpu: Gpu;
  /** CPU threads; null: one per core, one for a tiny model. */
  readonly threads: number | null;
  /** Gets a line about what takes long. Default: standard error. */
  readonly notice?: Notice;
  readonly signal?: AbortSignal;
};

/** Loads a folder. Fails with `MODEL_INVALID`, `MODEL_NOT_FOUND`, `UNSUPPORTED`, `NATIVE_UNAVAILABLE` or `ABORTED`. */
export async function loadOnnx(options: OnnxOptions): Promise<LoadedModel> {
  const folder = readFolder(options.path);
  const providers = await chooseProviders(options.gpu);
  const isTiny = isTinyFolder(folder);
  const thread: Thread = new ComputeThread('worker');
  const settings = { threads: options.threads ?? defaultThreads(isTiny), providers };
  try {
    const decoder = (await thread.request({
      kind: 'open',
      file: folder.file,
      sizes: folder.sizes,
      embeddings: folder.vision?.embeddings ?? null,
      ...settings,
    })) as Decoder;
    if (options.signal?.aborted) throw new OnpolicyError('ABORTED', `loading ${options.path} was aborted`);
    const tokenizer = await createTokenizer(folder, decoder.vocabSize);
    return new OnnxModel({ folder, decoder, tokenizer, thread, isTiny, settings, notice: options.notice });
  } catch (error) {
    await thread.close();
    throw error;
  }
}

/** Bytes of a folder's weights. Fails with `MODEL_INVALID` or `UNSUPPORTED`. */
export function onnxBytes(path: string): number {
  return weightBytes(readFolder(path));
}

/** Whether threads would only wait for each other. */
export function isTinyFolder(folder: ModelFolder): boolean {
  return weightBytes(folder) < TINY_BYTES;
}

function weightBytes({ weightFiles }: ModelFolder): number {
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

class OnnxModel implements LoadedModel {
  readonly fingerprint: string;
  readonly files: readonly string[];
  readonly tokenizer: Tokenizer;
  readonly contextLength: number;
  readonly chatTemplate: string;
  readonly toolTemplate: string;
  readonly defaults: SamplingDefaults;
  readonly kvBytesPerToken: number;
  readonly supportsNonUnifiedKv = true;
  readonly supportsSmallWindow = false;
  readonly state = { stateBytes: 0, takesBack: false, checkpointSize: 0 };
  readonly supportsUnifiedKv = false;
  readonly prefersUnifiedKv = false;
  readonly kernels = 'plain';
  readonly experts = null;
  readonly isTiny: boolean;
  readonly #decoder: Decoder;
  readonly #thread: Thread;
  readonly #folder: ModelFolder;
  readonly #settings: SessionSettings;
  readonly #notice: Notice | undefined;
  #vocabulary: Vocabulary | null = null;

  constructor({
    folder,
    decoder,
    tokenizer,
    thread,
    isTiny,
    settings,
    notice,
  }: {
    folder: ModelFolder;
    decoder: Decoder;
    tokenizer: Tokenizer;
    thread: Thread;
    isTiny: boolean;
    settings: SessionSettings;
    notice: Notice | undefined;
  }) {
    this.fingerprint = `onpolicy-onnx-${folder.name}-${path.basename(folder.file, '.onnx')}`;
    this.files = folder.weightFiles;
    this.tokenizer = tokenizer;
    this.contextLength = folder.contextLength;
    this.chatTemplate = folder.chatTemplate;
    this.toolTemplate = folder.toolTemplate;
    this.defaults = folder.defaults;
    const numbers = decoder.cache.reduce((sum, { heads, size }) => sum + heads * size, 0);
    this.kvBytesPerToken = numbers * (decoder.cacheType === 'float16' ? 2 : 4) * (decoder.fresh ? 1 : 2);
    this.isTiny = isTiny;
    this.#decoder = decoder;
    this.#thread = thread;
    this.#folder = folder;
    this.#settings = settings;
    this.#notice = notice;
  }

  async vocabulary(): Promise<Vocabulary> {
    await openGrammar(this.#notice);
    this.#vocabulary ??= toVocabulary(this.tokenizer);
    return this.#vocabulary;
  }

  async createBackend(limits: ContextLimits): Promise<Backend> {
    const rows = Math.max(limits.maxOutputs, limits.slotCount);
    const logits = new SharedArrayBuffer(4 * rows * this.#decoder.vocabSize);
    const abort = new SharedArrayBuffer(4);
    await this.#thread.request({ kind: 'start', slotCount: limits.slotCount, logits, abort });
    const { RowSampler } = loadAddon();
    const sampler = new RowSampler(this.#decoder.vocabSize, limits.threads);
    return new OnnxBackend(this.#decoder, limits, { thread: this.#thread, sampler, logits, abort });
  }

  async openVision(notice: Notice): Promise<NativeProjector | null> {
    const { folder, vision } = this.#folder;
    if (!vision) return null;
    await openLibraries(false); // the decoder of picture files needs them
    await openDecoder(notice);
    return await OnnxProjector.open(folder, vision, this.tokenizer, this.#settings);
  }

  async close(): Promise<void> {
    await this.#thread.close();
    await loadAddon().returnMemory();
  }
}

/** What a backend works with. */
type Parts = {
  readonly thread: Thread;
  readonly sampler: NativeRowSampler;
  readonly logits: SharedArrayBuffer; // (rows, vocabulary)
  readonly abort: SharedArrayBuffer;
};

class OnnxBackend implements Backend {
  readonly vocabSize: number;
  readonly kvTokens: number;
  readonly batchTokens: number;
  readonly outputRows: number;
  readonly slotCount: number;
  readonly rollbackTokens = Infinity;
  readonly draftHead = null;
  readonly windowTokens = 0;
  readonly savedWindow = 0;
  readonly rowTile = 1;
  readonly threads: number;
  readonly isKvUnified = false;
  readonly cacheShape: string;
  readonly #parts: Parts;
  readonly #logits: Float32Array;
  readonly #abort: Int32Array;

  constructor(decoder: Decoder, limits: ContextLimits, parts: Parts) {
    this.vocabSize = decoder.vocabSize;
    this.kvTokens = limits.kvTokens;
    this.batchTokens = limits.batchTokens;
    this.outputRows = Math.max(limits.maxOutputs, limits.slotCount);
    this.slotCount = limits.slotCount;
    const tensors = decoder.cache.map(({ past, heads, size }) => `${past} ${heads}x${size}`);
    this.cacheShape = `onnx ${decoder.cacheType} ${tensors.join(' ')}`;
    this.threads = limits.threads;
    this.#parts = parts;
    this.#logits = new Float32Array(parts.logits);
    this.#abort = new Int32Array(parts.abort);
  }

  async step(step: Step): Promise<StepResult> {
    const { memoryEdits, tokens, positions, sequences, sampleRows, scoreRows, samplers, rowEdits } = step;
    const { matchers, drafts } = step;
    const rowOf = new Map<number, number>(); // token -> row of the logits
    const place = (token: number): number => {
      if (!rowOf.has(token)) rowOf.set(token, rowOf.size);
      return rowOf.get(token)!;
    };
    const samples = sampleRows.map(place);
    const scores = scoreRows.map((value, i) => (i % 3 === 0 ? place(value) : value));
    Atomics.store(this.#abort, 0, 0);
    const rows = Int32Array.from(rowOf.keys());
    const { thread, sampler } = this.#parts;
    const media = (step.media ?? []).map(({ at, count, rows, first }) => {
      const { values, size } = featuresOf(rows);
      return { at, count, values: values.subarray(first * size, (first + count) * size) };
    });
    await thread.request({ kind: 'step', memoryEdits, tokens, positions, sequences, rows, media });
    try {
      const result = await sampler.sample({
        logits: this.#logits,
        sampleRows: samples,
        samplers,
        ...(matchers ? { matchers } : {}),
        ...(drafts ? { drafts } : {}),
        ...hookedSamples(rowEdits),
        scoreRows: scores,
      });
      return await finishEdits(sampler, rowEdits, result);
    } catch (error) {
      throw fromNative(error);
    }
  }

  async loadAdapter(path: string): Promise<number> {
    throw errorAt(
      'model',
      'UNSUPPORTED',
      `${path} is an adapter; adapters go beside GGUF models, an ONNX graph takes none`,
    );
  }

  async mixAdapters(): Promise<number> {
    throw errorAt('model', 'UNSUPPORTED', 'an ONNX graph takes no adapters');
  }

  async freeAdapter(): Promise<void> {}

  async attachHead(): Promise<void> {
    throw new OnpolicyError('UNSUPPORTED', 'an EAGLE-3 file drafts for GGUF models only');
  }

  async detachHead(): Promise<void> {}

  abortStep(): void {
    Atomics.store(this.#abort, 0, 1);
  }

  /** Its caches can be cut everywhere. */
  async saveCheckpoint(): Promise<number> {
    return 0;
  }

  async saveSlot(memoryEdits: Int32Array, slot: number): Promise<Uint8Array> {
    return (await this.#parts.thread.request({ kind: 'save', memoryEdits, slot })) as Uint8Array;
  }

  async loadSlot(memoryEdits: Int32Array, slot: number, state: Uint8Array): Promise<void> {
    await this.#parts.thread.request({ kind: 'load', memoryEdits, slot, state });
  }

  async close(): Promise<void> {
    await this.#parts.thread.close();
  }
}
