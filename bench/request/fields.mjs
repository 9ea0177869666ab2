// Settings -> the time of streams of many sequences with and without fields that report or watch tokens, in turns; and the processor time
// of this library's JavaScript for them, on an engine that computes nothing.
import { createRuntime } from '../../dist/index.js';
import { time } from '../decide/asked.mjs';
import { measureSteps } from '../engine/instant-model.mjs';
import { report, settingsOfProcess } from '../lib/measure.mjs';

const { model, threads, rounds, sequences = 32, tokens = 128, steps = 400 } = settingsOfProcess();

/** Fields by the name of their row. The watched repetitions end no answer, because it is too short to end. */
const watched = (most) => ({
  repetition_detection: { max_pattern_size: 20, min_count: 4 },
  min_tokens: most,
});
const FIELDS = {
  repetition_detection: watched,
  return_timings: () => ({ return_timings: true }),
  timings_per_token: () => ({ timings_per_token: true }),
  return_progress: () => ({ return_progress: true }),
};
/** The same request without the field. */
const plain = { repetition_detection: (most) => ({ min_tokens: most }) };
const fieldsOf = (name, isOn, most) => (isOn ? FIELDS[name](most) : (plain[name]?.(most) ?? {}));

const runtime = await createRuntime({
  ...(model ? { model: { path: model } } : {}),
  ...(threads ? { threads } : {}),
  maxSequences: sequences,
  contextSize: tokens + 128,
  speculation: false,
});

/** Streams all sequences to their end. */
async function stream(fields) {
  await Promise.all(
    Array.from({ length: sequences }, async (_, seed) => {
      const chunks = await runtime.createCompletion({
        messages: [{ role: 'user', content: `Tell me story number ${seed}.` }],
        ...{ max_completion_tokens: tokens, ignore_eos: true, temperature: 0.8, seed, stream: true },
        ...fields,
      });
      for await (const _chunk of chunks);
    }),
  );
}

/** Runs `measure` on and off in turns, each before the other equally often, so that a machine that changes its speed favours neither. */
async function inTurns(measure, most) {
  const samples = {};
  for (const name of Object.keys(FIELDS)) {
    const taken = { on: [], off: [] };
    const once = async (isOn) => taken[isOn ? 'on' : 'off'].push(await measure(fieldsOf(name, isOn, most)));
    for (let round = 0; round < rounds; round++) {
      await once(round % 2 === 0);
      await once(round % 2 !== 0);
    }
    samples[name] = taken;
  }
  return samples;
}

await stream({});
const streamed = await inTurns((fields) => time(() => stream(fields)), tokens);
await runtime.close();
const streaming = async (fields) =>
  (await measureSteps({ stream: true, ...fields }, { sequences, steps, tops: 0 })).stepMs;
for (let i = 0; i < 3; i++) await streaming({}); // lets the compiler settle
const computed = await inTurns(streaming, steps);
report({ streamed, computed, sequences, tokens });
