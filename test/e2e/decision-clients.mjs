// Unmodified clients that need Node 22, from a folder with their packages, ask for decisions over HTTP and in this process. Prints a line of
// JSON for each way. Arguments: the folder, the built package.
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, dist] = process.argv.slice(2);
const { resolve } = createRequire(path.join(folder, 'package.json'));
const load = (name) => import(pathToFileURL(resolve(name)).href);
const { createRuntime } = await import(pathToFileURL(path.join(dist, 'index.js')).href);
const { createFetch, serve } = await import(pathToFileURL(path.join(dist, 'serve/http/index.js')).href);
const { default: OpenAI } = await load('openai');
const { DecisionsToolRunner } = await load('openai/helpers/decisions-tool-runner');
const { experimental_decide: decide } = await load('ai');
const { createOpenAI } = await load('@ai-sdk/openai');
const { createTypeSafeAi } = await load('@ai-sdk/typesafe-ai');

const runtime = await createRuntime({ threads: 1, gpu: false });
const [model] = runtime.servedModels();
const server = await serve(runtime, { port: 0 });
const isGreater = 'Is 69 greater than 34?';
const ways = {
  http: { baseURL: `${server.url}/v1` },
  process: { baseURL: 'http://in.process/v1', fetch: createFetch(runtime) },
};

for (const [way, given] of Object.entries(ways)) {
  const settings = { apiKey: 'x', ...given };
  const client = new OpenAI(settings);
  const questions = [
    { type: 'predicate', name: 'is', instructions: isGreater },
    { type: 'choice', name: 'which', instructions: 'Which?', choices: [{ value: 'a' }, { value: true }] },
    { type: 'score', name: 'how', instructions: 'How much?', levels: [{ label: 'low' }, { label: 'high' }] },
  ];
  const input = 'The numbers are in.';
  const openai = await client.decisions.create({ model, input, questions });
  const own = await runtime.decide({ model, input, questions });

  const executed = [];
  let turns = 0;
  const runner = new DecisionsToolRunner({
    observe: () => `Turn ${turns}.`,
    candidates: () => [
      { id: 'wait', description: 'wait', execute: () => void executed.push(turns) },
      { id: 'stop', description: 'stop', done: true },
    ],
    verify: () => ++turns > 0,
  });
  const run = await runner.run(client, { model, input: 'Do what is right.' }, { maxSteps: 4 });

  const asked = {
    state: input,
    questions: {
      is: { type: 'boolean', instructions: isGreater },
      which: { type: 'choice', instructions: 'Which?', criteria: { a: 'the first', b: 'the second' } },
      how: { type: 'score', instructions: 'How much?', criteria: ['low', 'high'] },
    },
  };
  const answers = {};
  const models = {
    openai: createOpenAI(settings).decisionModel(model),
    typesafe: createTypeSafeAi(settings).evaluationModel(model),
  };
  for (const [name, decisionModel] of Object.entries(models))
    answers[name] = (await decide({ model: decisionModel, ...asked })).answers;
  process.stdout.write(
    `${JSON.stringify({ way, openai: openai.answers, own: own.answers, status: run.status, decisions: run.decisions.length, answers })}\n`,
  );
}
await server.close();
await runtime.close();
