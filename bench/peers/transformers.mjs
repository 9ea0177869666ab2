// Settings -> when the tokens came of transformers.js' own generate, greedily: one prompt, or several as one padded batch.
import path from 'node:path';
import { AutoModelForCausalLM, AutoTokenizer, BaseStreamer } from '@huggingface/transformers';
import { report, settingsOfProcess, TokenClock } from '../lib/measure.mjs';
import { wordPrompt } from '../lib/prompts.mjs';
import { sayReady } from '../lib/turns.mjs';

const { model: file, warmUp, sequences, promptWords, outputTokens, threads } = settingsOfProcess();

/** Opens a folder; gives what answers one batch of prompts. */
async function open(folder, dtype, sessionThreads) {
  const tokenizer = await AutoTokenizer.from_pretrained(folder, { local_files_only: true });
  tokenizer.padding_side = 'left';
  const model = await AutoModelForCausalLM.from_pretrained(folder, {
    dtype,
    local_files_only: true,
    session_options: { intraOpNumThreads: sessionThreads, interOpNumThreads: 1 },
  });
  return (prompts, tokens, clock) =>
    model.generate({
      ...tokenizer(prompts, { padding: true }),
      min_new_tokens: tokens,
      max_new_tokens: tokens,
      do_sample: false,
      ...(prompts.length === 1
        ? { streamer: new Ticker(clock) }
        : { logits_processor: [batchTicker(clock, prompts.length)] }),
    });
}

class Ticker extends BaseStreamer {
  #isPrompt = true;
  #clock;

  constructor(clock) {
    super();
    this.#clock = clock;
  }

  put(rows) {
    if (!this.#isPrompt) for (const sequence of rows.keys()) this.#clock.tick(sequence);
    this.#isPrompt = false;
  }

  end() {}
}

/** Streamers take one sequence only: with more, a step is noticed where its logits are looked at. */
function batchTicker(clock, count) {
  return (_ids, logits) => {
    for (let sequence = 0; sequence < count; sequence++) clock.tick(sequence);
    return logits;
  };
}

const prompts = Array.from({ length: sequences }, (_, index) => wordPrompt(promptWords, index));
if (warmUp) {
  const generate = await open(warmUp.model, 'fp32', 1);
  for (let i = 0; i < warmUp.answers; i++) await generate(prompts, warmUp.tokens, new TokenClock(sequences));
}
const dtype = path.basename(file) === 'model.onnx' ? 'fp32' : 'q8';
const generate = await open(path.dirname(path.dirname(file)), dtype, threads);
const clock = new TokenClock(sequences, sayReady);
await generate(prompts, outputTokens, clock);
report({ timesMs: clock.timesMs });
