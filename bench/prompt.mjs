// Prompt lengths -> tokens per second of this library and of bare llama_decode, on Q8_0 and Q4_K_M. All engines are loaded and compute
// one prompt after the other in turn, each on its own; ratios are taken within a round.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import os from 'node:os';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { buildBare } from './bare/build.mjs';
import { median, result, waitUntilQuiet } from './measure.mjs';
import { ensureModel } from './model/make.mjs';
import { ensureQ4Model } from './model/quantized.mjs';

const LENGTHS = [128, 512, 2000];
const BARE = { 'bare llama_decode': {}, 'bare llama_decode, no flash attention': { flash_attn: 0 } };
const OURS = 'onpolicy';

/** A process that computes a prompt for each line it gets, and says how many milliseconds it took. */
class Engine {
  #child;
  #answers;

  constructor(program, words) {
    this.#child = spawn(program, words, { stdio: ['pipe', 'pipe', 'inherit'] });
    process.once('exit', () => this.#child.kill('SIGKILL'));
    this.#answers = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  async promptMs() {
    this.#child.stdin.write('prompt\n');
    const { value, done } = await this.#answers.next();
    if (done) throw new Error('an engine ended');
    return Number(value);
  }

  async close() {
    this.#child.stdin.end();
    await once(this.#child, 'exit');
  }
}

async function openEngines(settings) {
  const script = fileURLToPath(new URL('./prompt/onpolicy.mjs', import.meta.url));
  const engines = new Map([[OURS, new Engine(process.execPath, [script, JSON.stringify(settings)])]]);
  const { program, libraries } = await buildBare();
  const { model, threads, promptTokens: prompt } = settings;
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

/** Rows of one model and length. The first prompt of each engine is not counted. */
async function measure(label, settings, rounds) {
  const engines = await openEngines(settings);
  const rates = new Map([...engines.keys()].map((name) => [name, []]));
  for (let round = -1; round < rounds; round++)
    for (const [name, engine] of engines) {
      const ms = await engine.promptMs();
      if (round >= 0) rates.get(name).push((1000 * settings.promptTokens) / ms);
    }
  for (const engine of engines.values()) await engine.close();
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

/** Tokens per second of prompts. `only` names models: q8_0, q4_k_m. */
export async function run({
  rounds = 3,
  threads = os.availableParallelism(),
  model,
  only = ['q8_0', 'q4_k_m'],
  log = () => {},
} = {}) {
  const rows = [];
  for (const type of model ? ['the model'] : only) {
    const file = model ?? (type === 'q8_0' ? ensureModel() : await ensureQ4Model());
    for (const promptTokens of LENGTHS) {
      await waitUntilQuiet({ log });
      log(`prompt: ${type}, ${promptTokens} tokens`);
      rows.push(
        ...(await measure(`${type}, ${promptTokens} tokens`, { model: file, threads, promptTokens }, rounds)),
      );
    }
  }
  return rows;
}
