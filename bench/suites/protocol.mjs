// Chat completion requests -> times of validation, and of loading the checks. Needs `npm run setup`.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const protocol = new URL('../../dist/protocol/index.js', import.meta.url);

const text = 'The quick brown fox jumps over the lazy dog. '.repeat(8);
const tool = (name) => ({
  type: 'function',
  function: {
    name,
    description: 'Looks something up.',
    parameters: {
      type: 'object',
      properties: { query: { type: 'string' }, limit: { type: 'integer', minimum: 1 } },
      required: ['query'],
    },
  },
});
const turns = (count) =>
  Array.from({ length: count }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: text }));

const small = { messages: turns(1), max_completion_tokens: 64 };
const typical = {
  model: 'qwen',
  messages: [{ role: 'system', content: 'You are helpful.' }, ...turns(7)],
  temperature: 0.7,
  top_p: 0.9,
  seed: 42,
  max_completion_tokens: 512,
  stop: ['</answer>'],
  logprobs: true,
  top_logprobs: 5,
  tools: [tool('search'), tool('read')],
  logit_bias: { 15: -3, 1024: 2 },
  stream: true,
  stream_options: { include_usage: true },
};
const long = { ...typical, messages: turns(1000) };
const faulty = { ...typical, temprature: 1, temperature: -1, n: 0, stop: [''], tool_choice: 'always' };

function attempt(validate, request) {
  try {
    validate(request);
  } catch {}
}

/** Microseconds of one call: samples of about a millisecond, shorter than what a busy machine gives to others in between. */
function timed(name, calls, samplesCount, call) {
  for (let i = 0; i < calls * 100; i++) call();
  const samples = Array.from({ length: samplesCount }, () => {
    const start = process.hrtime.bigint();
    for (let i = 0; i < calls; i++) call();
    return Number(process.hrtime.bigint() - start) / calls / 1000;
  });
  return row(name, 'us', samples);
}

function row(name, unit, samples) {
  const sorted = samples.toSorted((a, b) => a - b);
  return { name, unit, median: sorted[sorted.length >> 1], min: sorted[0], max: sorted.at(-1) };
}

/** Milliseconds that a new process needs to load the checks, without its own start. */
function loadTimes(rounds) {
  const code = `const start = performance.now(); await import(${JSON.stringify(protocol.href)}); console.log(performance.now() - start)`;
  const load = () =>
    Number(execFileSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' }));
  return Array.from({ length: rounds }, load);
}

/** The suite. */
export async function run({ rounds = 15 } = {}) {
  const { checkAndAdmitChat } = await import(protocol.href);
  const samples = rounds * 20;
  const validate = (request, options) => () => checkAndAdmitChat(request, options);
  return [
    timed('validate: one message', 100, samples, validate(small)),
    timed('validate: typical, 8 messages and 2 tools', 50, samples, validate(typical)),
    timed('validate: typical, over HTTP', 50, samples, validate(typical, { wire: true, maxLogprobs: 20 })),
    timed('validate: 1,000 messages', 2, samples, validate(long)),
    timed('refuse: five faults', 20, samples, () => attempt(checkAndAdmitChat, faulty)),
    row('load validation', 'ms', loadTimes(rounds)),
  ];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.table(await run());
