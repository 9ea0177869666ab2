/**
 * The program of `npm start`: the library's main features on the embedded model or the model named on the command line; with `--synthetic`
 * the speed of a full-size model. `scripts/start.mjs` runs it in two parts, `--answers` and `--rest`.
 * Writes plain text to a pipe, and colour to a terminal unless NO_COLOR is set, or with FORCE_COLOR.
 */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type ChatCompletion,
  type ChatCompletionRequest,
  createRuntime,
  OnpolicyError,
  type Runtime,
} from '../../index.ts';
import { learn } from './learning.ts';
import { drawPicture, readPicture } from './picture.ts';

type Messages = ChatCompletionRequest['messages'];

const STREAMED = [
  'What is the capital of Peru?',
  'Extract the name, age and city as JSON: Omar is 26 years old and lives in Delhi.',
  'Tell me a story.',
];
const TOGETHER = [
  'What is the capital of Japan?',
  'Translate to French: house',
  'Count from 4 to 9.',
  'Sort the numbers 59, 50, 82, 84.',
  'What color is snow?',
  'Spell the word peach.',
  'What is the opposite of strong?',
  'Is 69 greater than 34? Answer yes or no.',
];
const LONGEST = Math.max(...TOGETHER.map((question) => question.length));
const UNSURE = 'What is 45 - 5?';
const SEEN = ['What is in the picture?', 'How many shapes are there?', 'Where are the shapes?'];
const PERSON = {
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'integer' }, city: { type: 'string' } },
  required: ['name', 'age', 'city'],
  additionalProperties: false,
};
const LEARNING_ROUNDS = 16;
const TURNS = ['My name is Omar.', 'What is my name?', 'What color is the sky?'];

const { FORCE_COLOR, NO_COLOR } = process.env;
const usesColor = FORCE_COLOR ? true : process.stdout.isTTY === true && !NO_COLOR;
const style =
  (code: number) =>
  (text: string): string =>
    usesColor && text !== '' ? `\u001b[${code}m${text}\u001b[0m` : text;
const bold = style(1);
const dim = style(2);
const green = style(32);

process.stdout.on('error', () => process.exit(0)); // the reader of the pipe has closed it

const [, , word] = process.argv;
if (word === '--synthetic') {
  const command = fileURLToPath(new URL('../cli/index.js', import.meta.url));
  process.exitCode = spawnSync(process.execPath, [command, 'bench', word], { stdio: 'inherit' }).status ?? 1;
} else await main(word);

async function main(word: string | undefined): Promise<void> {
  const isPart = word === '--answers' || word === '--rest';
  const model = isPart ? undefined : word;
  await using runtime = await createRuntime(model === undefined ? {} : { model });
  if (word !== '--rest') await answers(runtime, model);
  if (word !== '--answers') await rest(runtime, model);
}

/** Shows what needs neither the trainer nor the grammar engine, which a fresh clone has later. */
async function answers(runtime: Runtime, model: string | undefined): Promise<void> {
  const startMs = performance.now();
  await runtime.tokenize(''); // loads the model, which happens on first use
  print(bold('A language model inside this Node process'));
  const name = model ?? 'the embedded model, models/onpolicy-tiny.gguf';
  print(dim(`${name}: ready after ${ms(performance.now() - startMs)}`));

  heading('Answers, streamed while they are made');
  for (const question of STREAMED) await streamed(runtime, question);

  heading(`${TOGETHER.length} questions at once, each printed when it is complete`);
  await together(runtime);
  if (model === undefined)
    print(
      dim(
        'This model is too small to gain from that: npm start -- --synthetic shows what a full-size one gains',
      ),
    );

  heading('How sure was it? Every token with its probability');
  await withProbabilities(runtime);

  heading('A conversation: what was read before is not computed again');
  await conversation(runtime);
}

async function rest(runtime: Runtime, model: string | undefined): Promise<void> {
  if (model === undefined) {
    heading('It sees: a second small model, trained on pictures like this one');
    await seeing();

    heading('It learns: sample, score, train, in this process; the next answer uses the better weights');
    await learning();
  }

  heading('It keeps to a JSON Schema: tokens that do not fit are never sampled');
  await structured(runtime);

  heading('What the engine did');
  const {
    promptTokens,
    generatedTokens,
    steps,
    kvTokensCached,
    running,
    waiting,
    kernels: used,
  } = runtime.stats();
  print(`${generatedTokens} tokens generated and ${promptTokens} prompt tokens read in ${steps} steps`);
  for (const { model: file, kernels } of used)
    print(
      `matmul kernels of ${path.basename(file)}: ${kernels === 'plain' ? "the engine's" : `ours, ${kernels}`}`,
    );
  print(`${kvTokensCached} tokens kept for later prompts; ${running} running, ${waiting} waiting`);
}

async function streamed(runtime: Runtime, question: string): Promise<void> {
  printQuestion(question);
  const startMs = performance.now();
  let firstMs = 0;
  let tokens = 0;
  process.stdout.write('  ');
  const stream = await runtime.createCompletion({
    messages: [{ role: 'user', content: question }],
    temperature: 0,
    stream: true,
    stream_options: { include_usage: true },
  });
  for await (const chunk of stream) {
    const text = chunk.choices[0]?.delta.content ?? '';
    if (text !== '' && firstMs === 0) firstMs = performance.now() - startMs;
    process.stdout.write(green(text.replaceAll('\n', '\n  ')));
    tokens = chunk.usage?.completion_tokens ?? tokens;
  }
  print(
    `\n  ${dim(`first text after ${ms(firstMs)}, ${tokens} tokens in ${ms(performance.now() - startMs)}`)}`,
  );
}

async function together(runtime: Runtime): Promise<void> {
  const startMs = performance.now();
  const ask = async (question: string): Promise<number> => {
    const answer = await answerTo(runtime, question);
    print(
      `${dim(ms(performance.now() - startMs).padStart(7))}  ${question.padEnd(LONGEST)}  ${green(textOf(answer))}`,
    );
    return answer.usage.completion_tokens;
  };
  const counts = await Promise.all(TOGETHER.map(ask));
  const seconds = (performance.now() - startMs) / 1000;
  const tokens = counts.reduce((sum, count) => sum + count, 0);
  print(
    dim(
      `${tokens} tokens in ${ms(seconds * 1000)}: ${Math.round(tokens / seconds)} tokens per second together`,
    ),
  );
}

async function withProbabilities(runtime: Runtime): Promise<void> {
  printQuestion(UNSURE);
  const answer = await answerTo(runtime, UNSURE, { logprobs: true, top_logprobs: 4 });
  print(`  ${green(textOf(answer))}`);
  print(dim(`  ${'token'.padEnd(14)}${'probability'.padStart(11)}   best alternatives`));
  for (const { token, logprob, top_logprobs } of answer.choices[0]?.logprobs?.content ?? []) {
    const others = top_logprobs
      .filter((other) => other.token !== token)
      .slice(0, 3)
      .map((other) => `${JSON.stringify(other.token)} ${percent(other.logprob)}`);
    print(
      `  ${JSON.stringify(token).padEnd(14)}${percent(logprob).padStart(11)}   ${dim(others.join('   '))}`,
    );
  }
}

async function conversation(runtime: Runtime): Promise<void> {
  const messages: Messages[number][] = [];
  for (const question of TURNS) {
    messages.push({ role: 'user', content: question });
    const answer = await runtime.createCompletion({ messages, temperature: 0 });
    messages.push({ role: 'assistant', content: textOf(answer) });
    const { prompt_tokens, prompt_tokens_details } = answer.usage;
    printQuestion(question);
    print(`  ${green(textOf(answer))}`);
    print(
      dim(
        `  prompt: ${prompt_tokens} tokens, ${prompt_tokens_details?.cached_tokens ?? 0} of them from the cache`,
      ),
    );
  }
}

async function structured(runtime: Runtime): Promise<void> {
  const question = STREAMED[1]!;
  printQuestion(question);
  const answer = await answerTo(runtime, question, {
    response_format: { type: 'json_schema', json_schema: { name: 'person', schema: PERSON, strict: true } },
  });
  print(`  ${green(textOf(answer))}`);
}

/** Describes a picture. Uses a separate runtime, because the model is another file. */
async function seeing(): Promise<void> {
  const folder = new URL('../../../models/seeing/', import.meta.url);
  const file = fileURLToPath(new URL('pictures/three.png', folder));
  print(dim(path.relative(process.cwd(), file)));
  for (const line of drawPicture(readPicture(file), usesColor)) print(`  ${line}`);
  const url = `data:image/png;base64,${fs.readFileSync(file, 'base64')}`;
  await using runtime = await createRuntime({
    model: fileURLToPath(new URL('onpolicy-seeing.gguf', folder)),
  });
  for (const text of SEEN) {
    const picture = { type: 'image_url', image_url: { url } } as const;
    const answer = await answerTo(runtime, [picture, { type: 'text', text }]).catch((error: unknown) => {
      if (!(error instanceof OnpolicyError) || error.code !== 'NATIVE_UNAVAILABLE') throw error;
      print(error.message);
      return null;
    });
    if (answer === null) return;
    printQuestion(text);
    print(`  ${green(textOf(answer))}`);
  }
}

/** Trains the model. Uses a separate runtime, whose home folder is removed afterwards. */
async function learning(): Promise<void> {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-demo-'));
  const startMs = performance.now();
  try {
    await using runtime = await createRuntime({ home });
    await learn(runtime, LEARNING_ROUNDS, {
      example(when, question, answer) {
        if (when === 'before') printQuestion(question);
        print(`  ${when.padEnd(6)}  ${green(answer)}`);
      },
      round(round, reward) {
        if (round !== 1 && round % 4 !== 0) return;
        const bar = '#'.repeat(Math.round(reward * 40));
        print(dim(`  round ${String(round).padStart(2)}  reward ${reward.toFixed(2)}  ${bar}`));
      },
    });
  } finally {
    fs.rmSync(home, { recursive: true, force: true });
  }
  print(dim(`  ${ms(performance.now() - startMs)} for ${LEARNING_ROUNDS} rounds`));
}

function answerTo(
  runtime: Runtime,
  content: Extract<Messages[number], { role: 'user' }>['content'],
  more: Partial<ChatCompletionRequest> = {},
): Promise<ChatCompletion> {
  const messages = [{ role: 'user' as const, content }];
  return runtime.createCompletion({ messages, temperature: 0, ...more, stream: false });
}

function textOf(answer: ChatCompletion): string {
  return answer.choices[0]?.message.content ?? '';
}

function printQuestion(question: string): void {
  print(`${dim('>')} ${question}`);
}

function heading(text: string): void {
  print(`\n${bold(text)}`);
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function ms(value: number): string {
  return value < 1000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(1)} s`;
}

function percent(logprob: number): string {
  return `${(Math.exp(logprob) * 100).toFixed(1)} %`;
}
