// A model whose engine computes nothing -> the processor time of this library's JavaScript for a step of many sequences. The whole path
// is included: scheduling, sampled rows, text, log-probabilities, chunks, readers. Also the part that delays the next step.
import { answer } from '../../dist/answer/answer.js';
import { LeaseScope } from '../../dist/common/index.js';
import { Engine } from '../../dist/engine/engine.js';
import { checkAndAdmitChat } from '../../dist/protocol/index.js';
import { readTemplate } from '../../dist/template/chat-format/model-template.js';

const VOCABULARY = 32_768;

/** Every token has three letters, so texts grow like real ones. */
const tokenizer = {
  vocabSize: VOCABULARY,
  eosId: 0,
  endIds: new Set([0]),
  bosText: '',
  eosText: '',
  encode: async (text) => Int32Array.from(text, (_, i) => 1 + (i % 1000)),
  bytesOf: (id) => Uint8Array.of(97 + (id % 26), 97 + ((id >> 3) % 26), 32),
  isSpecial: (id) => id === 0,
};

/** Answers every step at once with the same columns, as large as the real engine's. `tops`: alternatives of each token. */
class InstantBackend {
  vocabSize = VOCABULARY;
  rowTile = 1;
  isKvUnified = true;
  batchTokens = 4096;
  rollbackTokens = Infinity;
  windowTokens = 0;
  savedWindow = 0;
  #tops;
  #columns = new Map();
  #answeredMs = 0;
  steps = 0;
  waitMs = 0; // from answers to the next steps

  constructor(sequences, tops) {
    this.kvTokens = 1024 * sequences;
    this.slotCount = sequences;
    this.outputRows = sequences;
    this.#tops = tops;
  }

  async step({ samplers }) {
    if (this.steps > 0) this.waitMs += performance.now() - this.#answeredMs;
    this.steps += 1;
    await new Promise((resolve) => setImmediate(resolve)); // an answer from another thread comes in a turn of its own
    this.#answeredMs = performance.now();
    return { samples: this.#rows(samplers.length), scores: this.#rows(0) };
  }

  abortStep() {}
  async close() {}

  #rows(count) {
    const tops = this.#tops;
    let rows = this.#columns.get(count);
    if (!rows) {
      rows = {
        status: new Uint8Array(count),
        tokens: Int32Array.from({ length: count }, (_, row) => 1 + row),
        isFinal: new Uint8Array(count),
        logprobs: new Float32Array(count).fill(-1.5),
        ranks: new Int32Array(count).fill(1),
        topOffsets: Int32Array.from({ length: count + 1 }, (_, row) => row * tops),
        topIds: Int32Array.from({ length: count * tops }, (_, i) => 1 + i),
        topLogprobs: new Float32Array(count * tops).fill(-2.5),
      };
      this.#columns.set(count, rows);
    }
    return rows;
  }
}

/** Milliseconds of each step while all sequences run: processor time, and time until the next one starts. */
export async function measureSteps(fields, { sequences, steps, tops }) {
  const backend = new InstantBackend(sequences, tops);
  const template = readTemplate('{{ messages[0].content }}', tokenizer, undefined);
  const engine = new Engine(backend, { maxRunning: sequences, scheduling: 'fcfs', prefixCache: true });
  const model = {
    path: 'fake',
    name: 'fake',
    loaded: {},
    tokenizer,
    engine,
    template,
    toolTemplate: null,
    contextSize: 1024,
    fingerprint: 'fake',
    defaults: { temperature: null, top_p: null, top_k: null, min_p: null, repetition_penalty: null },
  };
  const start = process.cpuUsage();
  await Promise.all(
    Array.from({ length: sequences }, async (_, arrival) => {
      const content = `${String.fromCharCode(65 + arrival)} question`;
      const body = {
        messages: [{ role: 'user', content }],
        max_completion_tokens: steps,
        seed: arrival,
        ...fields,
      };
      const request = checkAndAdmitChat(body, { wire: false });
      const answered = await answer({ model, adapter: null }, request, {
        signal: undefined,
        leases: new LeaseScope(),
        processedLogprobs: false,
        speculation: 'auto',
        answerIndexBytes: 0,
        arrival,
        cacheSalt: null,
        background: false,
      });
      if (body.stream) for await (const _chunk of answered);
    }),
  );
  const { user, system } = process.cpuUsage(start);
  await engine.close();
  return { stepMs: (user + system) / 1000 / backend.steps, waitMs: backend.waitMs / backend.steps };
}
