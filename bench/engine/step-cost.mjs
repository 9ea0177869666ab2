// Settings -> processor time of this library's JavaScript for a step of 32 sequences, on an engine that computes nothing: whole answers, and
// streams with log-probabilities.
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { measureSteps } from './instant-model.mjs';

const { rounds, sequences = 32, steps = 400, tops = 5 } = settingsOfProcess();
const measure = (fields) => measureSteps(fields, { sequences, steps, tops });

const CASES = {
  whole: {},
  'streaming with log-probabilities': { stream: true, logprobs: true, top_logprobs: tops },
};
const samples = Object.fromEntries(Object.keys(CASES).map((name) => [name, { stepMs: [], waitMs: [] }]));
for (const fields of Object.values(CASES)) await measure(fields); // lets the compiler settle
for (let round = 0; round < rounds; round++)
  for (const [name, fields] of Object.entries(CASES)) {
    const { stepMs, waitMs } = await measure(fields);
    samples[name].stepMs.push(stepMs);
    samples[name].waitMs.push(waitMs);
  }
report({ samples, sequences });
