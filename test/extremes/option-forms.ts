/** Options of every kind, with all of their parts filled in: what the extremes take the place of. */
import type { Form } from './draws.ts';

/** Options of one call. */
export const CALL: Form = { fields: ['signal', 'traceId'], bases: [{ traceId: 'a' }] };

const model = {
  path: 'onpolicy-tiny',
  gpuLayers: 0,
  cpuExpertLayers: 0,
  fusedAttention: true,
  cacheType: 'f16',
  slidingWindow: 'full',
  mmap: true,
  mlock: false,
  kernels: 'auto',
  products: 'auto',
  chatTemplate: 'x',
  toolFormat: 'hermes',
  contextSize: 64,
  threads: 1,
};

/** Options of a runtime. */
export const RUNTIME: Form = {
  fields: ['log', 'tracker', 'onStoreProblem', 'onProgress', 'kvTransferFolder'],
  bases: [
    {
      model,
      models: { a: 'onpolicy-tiny', b: model },
      home: '.onpolicy-extremes',
      gpu: false,
      training: { rank: 4, alpha: 8, rslora: true, modules: ['attn_q'], memoryBudget: 1e9 },
      contextSize: 64,
      kvTokens: 4096,
      maxSequences: 4,
      maxBatchTokens: 64,
      threads: 1,
      scheduling: 'fcfs',
      prefixCache: true,
      logprobsMode: 'raw',
      maxLogprobs: 5,
      allowRequestTemplate: true,
      hub: { token: 't', folder: '.onpolicy-hub', endpoint: 'http://127.0.0.1:1', offline: true },
      media: {
        maxBytes: 1,
        maxPixels: 1,
        maxSeconds: 1,
        maxParts: 1,
        cacheBytes: 1,
        maxQueued: 1,
        folders: ['a'],
      },
      speculation: { method: 'ngram', maxTokens: 3, minMatch: 2 },
      answerIndexBytes: 0,
      diskCacheBytes: 0,
    },
    {
      speculative_config: {
        method: 'suffix',
        num_speculative_tokens: 3,
        prompt_lookup_min: 2,
        prompt_lookup_max: 4,
      },
    },
    { speculation: { method: 'draft', model: 'onpolicy-tiny', maxTokens: 3 } },
    { speculative_config: { method: 'draft_model', model: 'onpolicy-tiny', num_speculative_tokens: 3 } },
  ],
};

/** Options of a handler. */
export const HANDLER: Form = {
  fields: ['onError', 'requestTimeoutMs'],
  bases: [
    {
      tokens: ['a', { token: 'b', scopes: ['read'] }],
      allowAnonymous: false,
      basePath: '/api',
      corsOrigins: ['*'],
      models: ['onpolicy-tiny'],
      adapterFolders: ['adapters'],
      maxInputs: 10,
      maxLogprobs: 5,
      maxChoices: 4,
      maxBodyBytes: 1000,
      maxMessages: 10,
      maxTrajectories: 10,
      bodyTimeoutMs: 1000,
      sharePrefixCache: false,
    },
  ],
};

/** Options of a server: those of its handler, and its own. */
export const SERVER: Form = {
  fields: HANDLER.fields,
  bases: [{ ...HANDLER.bases[0], port: 8080, host: '127.0.0.1', graceMs: 100 }],
};

/** Options of a client. */
export const CLIENT: Form = {
  fields: ['fetch'],
  bases: [
    {
      baseUrl: 'http://127.0.0.1:1',
      apiKey: 'k',
      headers: { a: 'b' },
      timeoutMs: 100,
      maxRetries: 0,
      pollMs: 10,
    },
  ],
};

/** Options of a pool. */
export const POOL: Form = { fields: ['trainer', 'retryMs'], bases: [{ trainer: 0, retryMs: 10 }] };
