// Settings -> when the tokens came of bare session runs: rows of one length, the present fed back as the past, nothing sampled.
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { report, settingsOfProcess, TokenClock } from '../lib/measure.mjs';
import { sayReady } from '../lib/turns.mjs';

const { model, sequences, promptTokens, outputTokens, threads } = settingsOfProcess();
const session = await InferenceSession.create(model, { intraOpNumThreads: threads, interOpNumThreads: 1 });
const pastNames = session.inputNames.filter((name) => name.startsWith('past_key_values'));
const [, heads, , size] = session.inputMetadata.find(({ name }) => name === pastNames[0]).shape;

const clock = new TokenClock(sequences, sayReady);
let past = pastNames.map(() => new Tensor('float32', new Float32Array(0), [sequences, heads, 0, size]));

async function run(count, before) {
  const ids = BigInt64Array.from({ length: sequences * count }, (_, i) => BigInt((i * 7919) % 900));
  const positions = BigInt64Array.from(ids, (_, i) => BigInt(before + (i % count)));
  const mask = new BigInt64Array(sequences * (before + count)).fill(1n);
  const feeds = {
    input_ids: new Tensor('int64', ids, [sequences, count]),
    attention_mask: new Tensor('int64', mask, [sequences, before + count]),
    position_ids: new Tensor('int64', positions, [sequences, count]),
    num_logits_to_keep: new Tensor('int64', BigInt64Array.of(1n), []),
  };
  for (const [i, name] of pastNames.entries()) feeds[name] = past[i];
  const results = await session.run(feeds);
  past = pastNames.map((name) => results[name.replace('past_key_values', 'present')]);
  for (let sequence = 0; sequence < sequences; sequence++) clock.tick(sequence);
}

await run(promptTokens, 0);
for (let step = 0; step < outputTokens; step++) await run(1, promptTokens + step);
report({ timesMs: clock.timesMs });
