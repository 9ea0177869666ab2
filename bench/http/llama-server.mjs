// Settings -> the client of this library against llama.cpp's own server on the embedded model: [question, whether its answer was right].
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { connect, createRuntime } from '../../dist/index.js';
import { startLlamaServer } from '../lib/llama-server.mjs';
import { report, settingsOfProcess } from '../lib/measure.mjs';

const { program } = settingsOfProcess();
const model = fileURLToPath(new URL('../../models/onpolicy-tiny.gguf', import.meta.url));
const { url: baseUrl } = await startLlamaServer(program, [
  '--model',
  model,
  '--jinja',
  '--threads',
  1,
  '--context-shift',
]);
const remote = connect({ baseUrl });
const local = await createRuntime({ gpu: false, threads: 1 });

/**
 * Both compute the same float32 sums in another order (batches differ, and so do the builds), which moves a log-probability
 * by about 0.00002, and one of a very unlikely token, -12 or so, by up to 0.005. Another prompt, sampler or normalization
 * would move them by far more than this share of their size.
 */
const MOST_LOGPROB_DIFFERENCE = 0.001;

const CITY = { enum: ['Lima', 'Paris'] };
const CITY_OBJECT = {
  type: 'object',
  properties: { city: CITY },
  required: ['city'],
  additionalProperties: false,
};
const WEATHER = {
  tools: [{ type: 'function', function: { name: 'get_weather', parameters: CITY_OBJECT } }],
  parallel_tool_calls: false, // the default of that server, not of the interface
};
const NAMED = { type: 'function', function: { name: 'get_weather' } };
const SCHEMA = {
  response_format: { type: 'json_schema', json_schema: { name: 'city', schema: CITY_OBJECT } },
};

/** Requests, and the parts of their answers that must be equal. */
const QUESTIONS = [
  ['What is the capital of Peru?', {}],
  ['What color is snow?', {}],
  ['Translate to French: house', {}],
  // The answer stops before the end token: that server gives this token no text and leaves it out of streams.
  ['What is the capital of Peru?', { logprobs: true, top_logprobs: 3, max_tokens: 8 }],
  ['What is the weather in Lima?', { ...WEATHER, tool_choice: 'required' }],
  ['What is the weather in Lima?', { ...WEATHER, tool_choice: NAMED }],
  ['Name a city as JSON.', SCHEMA],
].map(([content, more]) => ({
  messages: [{ role: 'user', content }],
  temperature: 0,
  max_tokens: 64,
  ...more,
}));

/** An answer in the form that both servers share. Ids of calls are drawn, and servers say "no text" in several ways. */
function essence({ content, toolCalls, logprobs }) {
  const calls = (toolCalls ?? []).map(({ function: { name, arguments: text } }) => [name, JSON.parse(text)]);
  return { content: content || '', calls, logprobs: (logprobs ?? []).map(toNumbers) };
}

/** Token -> log-probability of one position, that of the sampled one first. */
function toNumbers({ token, logprob, top_logprobs: top }) {
  return [[token, logprob], ...top.map((other) => [other.token, other.logprob])];
}

async function whole(service, request) {
  const [{ message, logprobs }] = (await service.createCompletion(request)).choices;
  return essence({ content: message.content, toolCalls: message.tool_calls, logprobs: logprobs?.content });
}

async function streamed(service, request) {
  let content = '';
  const toolCalls = [];
  const logprobs = [];
  for await (const { choices } of await service.createCompletion({ ...request, stream: true })) {
    const { delta, logprobs: more } = choices[0] ?? { delta: {} };
    content += delta.content ?? '';
    logprobs.push(...(more?.content ?? []));
    for (const { index, function: part } of delta.tool_calls ?? []) {
      toolCalls[index] ??= { function: { name: '', arguments: '' } };
      toolCalls[index].function.name += part.name ?? '';
      toolCalls[index].function.arguments += part.arguments ?? '';
    }
  }
  return essence({ content, toolCalls, logprobs });
}

function isSame(answer, expected) {
  const { logprobs, ...rest } = answer;
  const { logprobs: wanted, ...wantedRest } = expected;
  const isNear = (position, i) => {
    const numbers = new Map(wanted[i]);
    return position.every(
      ([token, logprob]) =>
        Math.abs(logprob - numbers.get(token)) < MOST_LOGPROB_DIFFERENCE * Math.max(1, -logprob),
    );
  };
  return isDeepStrictEqual(rest, wantedRest) && logprobs.length === wanted.length && logprobs.every(isNear);
}

async function isAnswered(request) {
  const expected = await whole(local, request);
  return isSame(await whole(remote, request), expected) && isSame(await streamed(remote, request), expected);
}

/** Against a server that cannot train, every such method refuses by name. */
async function isRefused() {
  const { models, checkpoints, trainingJobs } = remote;
  const calls = [
    models.list(),
    models.create({ base_model: 'm' }),
    models.retrieve('m'),
    models.delete('m'),
    checkpoints.list('m'),
    checkpoints.delete('m', { steps: [1] }),
    trainingJobs.retrieve('j'),
    trainingJobs.events('j'),
    trainingJobs.cancel('j'),
  ];
  const outcomes = await Promise.allSettled(calls);
  return outcomes.every(
    ({ reason }) => reason?.code === 'UNSUPPORTED' && reason.message.includes('has no endpoint'),
  );
}

/** Ends a long stream; its slot is free at once. */
async function isFreed(leave) {
  const controller = new AbortController();
  const messages = [{ role: 'user', content: 'Write a story.' }];
  const request = { messages, max_tokens: 100_000, ignore_eos: true, stream: true };
  const stream = await remote.createCompletion(request, { signal: controller.signal });
  let wasBusy = false;
  let code;
  try {
    for await (const { choices } of stream) {
      if (!choices[0]?.delta.content) continue;
      wasBusy ||= await isBusy(); // more chunks may lie ready when the request is ended
      if (leave === 'break') break;
      controller.abort();
    }
  } catch (error) {
    code = error.code;
  }
  for (let i = 0; i < 20 && (await isBusy()); i++) await sleep(50);
  return wasBusy && !(await isBusy()) && code === (leave === 'break' ? undefined : 'ABORTED');
}

async function isBusy() {
  const slots = await (await fetch(`${baseUrl}/slots`)).json();
  return slots.some(({ is_processing }) => is_processing);
}

const answered = [];
for (const request of QUESTIONS) answered.push(await isAnswered(request));
const freed = [await isFreed('break'), await isFreed('abort')];
const refused = await isRefused();
await local.close();
await remote.close();
report({ answered, freed, refused });
