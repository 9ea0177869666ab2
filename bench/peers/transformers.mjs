// Settings -> tokens per second of transformers.js' own generate, greedily: one prompt, or several as one padded batch.
import path from 'node:path';
import { AutoModelForCausalLM, AutoTokenizer, BaseStreamer } from '@huggingface/transformers';
import { report, settingsOfProcess, TokenClock } from '../measure.mjs';
import { wordPrompt } from '../prompts.mjs';

const { model: file, sequences, promptWords, outputTokens, threads } = settingsOfProcess();
const folder = path.dirname(path.dirname(file));
const dtype = path.basename(file) === 'model.onnx' ? 'fp32' : 'q8';
const tokenizer = await AutoTokenizer.from_pretrained(folder, { local_files_only: true });
tokenizer.padding_side = 'left';
const model = await AutoModelForCausalLM.from_pretrained(folder, {
  dtype,
  local_files_only: true,
  session_options: { intraOpNumThreads: threads, interOpNumThreads: 1 },
});

const clock = new TokenClock(sequences);
class Ticker extends BaseStreamer {
  #isPrompt = true;

  put(rows) {
    if (!this.#isPrompt) for (const sequence of rows.keys()) clock.tick(sequence);
    this.#isPrompt = false;
  }

  end() {}
}

const prompts = Array.from({ length: sequences }, (_, index) => wordPrompt(promptWords, index));
const inputs = tokenizer(prompts, { padding: true });
await model.generate({
  ...inputs,
  min_new_tokens: outputTokens,
  max_new_tokens: outputTokens,
  do_sample: false,
  ...(sequences === 1 ? { streamer: new Ticker() } : { logits_processor: [batchTicker()] }),
});
report({ timesMs: clock.timesMs, tokensPerSecond: clock.tokensPerSecond() });

/** Streamers take one sequence only: with more, a step is noticed where its logits are looked at. */
function batchTicker() {
  return (_ids, logits) => {
    for (let sequence = 0; sequence < sequences; sequence++) clock.tick(sequence);
    return logits;
  };
}
