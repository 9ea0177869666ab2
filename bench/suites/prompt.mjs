// Prompt lengths -> tokens per second of this library and of bare llama_decode, on Q8_0 and Q4_K_M. All engines are loaded and compute
// one prompt after the other in turn, each on its own; ratios are taken within a round.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import os from 'node:os';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { buildBare } from '../bare/build.mjs';
import { median, result, waitUntilQuiet } from '../lib/measure.mjs';
import { ensureOf } from '../model/quantized.mjs';

const BARE = { 'bare llama_decode': {}, 'bare llama_decode, no flash attention': { flash_attn: 0 } };
const OURS = 'onpolicy';
/** The engine's own threads spin for a part of a second after a prompt, which the next one would pay for. */
const UNTIL_IDLE_MS = 500;

/** A process that computes a prompt of as many tokens as it is told, and says how many milliseconds it took. */
class Engine {
  #child;
  #answers;

  constructor(program, words) {
    this.#child = spawn(program, words, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#answers = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  async promptMs(tokens) {
    this.#child.stdin.write(`${tokens}\n`);
    const { value, done } = await this.#answers.next();
    if (done) throw new Error('an engine ended');
    return Number(value);
  }

  async close() {
    this.#child.stdin.end();
    await once(this.#child, 'exit');
  }

  kill() {
    this.#child.kill('SIGKILL');
  }
}

async function openEngines(settings) {
  const script = fileURLToPath(new URL('../prompt/onpolicy.mjs', import.meta.url));
  const engines = new Map([[OURS, new Engine(process.execPath, [script, JSON.stringify(settings)])]]);
  const { program, libraries } = await buildBare();
  const { model, threads, mostTokens: prompt } = settings;
  for (const [name, bare] of Object.entries(BARE)) {
    const words = Object.entries({ libraries, model, threads, prompt, steps: 1, commanded: 1, ...bare });
    engines.set(
      name,
      new Engine(
        program,
        words.map(([key, value]) => `${key}=${value}`),
      ),
    );
  }
  return engines;
}

/** Rows of one model: each length in each round, by one engine after the other. */
async function measure(label, settings, lengths, rounds, log) {
  const engines = await openEngines(settings);
  const kill = () => {
    for (const engine of engines.values()) engine.kill();
  };
  process.once('exit', kill);
  const rates = new Map(
    lengths.map((tokens) => [tokens, new Map([...engines.keys()].map((name) => [name, []]))]),
  );
  try {
    for (const engine of engines.values()) await engine.promptMs(lengths[0]);
    for (let round = 0; round < rounds; round++)
      for (const tokens of lengths) {
        for (const [name, engine] of engines) {
          await sleep(UNTIL_IDLE_MS);
          rates
            .get(tokens)
            .get(name)
            .push((1000 * tokens) / (await engine.promptMs(tokens)));
        }
        log(`prompt: round ${round + 1}/${rounds}, ${label}, ${tokens} tokens`);
      }
    for (const engine of engines.values()) await engine.close();
  } finally {
    kill();
    process.off('exit', kill);
  }
  return lengths.flatMap((tokens) => rowsOf(`${label}, ${tokens} tokens`, rates.get(tokens)));
}

/** Rows of one length: `rates` is engine -> tokens per second, one for each round. */
function rowsOf(label, rates) {
  const ours = rates.get(OURS);
  const best = Object.keys(BARE).sort((a, b) => median(rates.get(b)) - median(rates.get(a)))[0];
  const ratio = median(ours.map((rate, round) => rate / rates.get(best)[round]));
  return [...rates].map(([name, samples]) =>
    result(
      `${label}: ${name}`,
      'tokens/s',
      samples,
      name === OURS ? { 'bare llama_decode': ratio } : undefined,
    ),
  );
}

/** Tokens per second of prompts. `lengths` are those of the prompts; `only` names types of the model: q8_0, q4_k_m, f16, f32. */
export async function run({
  rounds = 3,
  threads = os.availableParallelism(),
  model,
  lengths = [128, 512, 2000],
  only = ['q8_0', 'q4_k_m'],
  log = () => {},
} = {}) {
  const rows = [];
  for (const type of model ? ['the model'] : only) {
    const file = model ?? (await ensureOf(type));
    await waitUntilQuiet({ log });
    rows.push(
      ...(await measure(
        type,
        { model: file, threads, mostTokens: Math.max(...lengths) },
        lengths,
        rounds,
        log,
      )),
    );
  }
  return rows;
}
