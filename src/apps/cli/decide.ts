/** `onpolicy decide`: a question, or a file of questions, about the input -> the probabilities of its values. */
import fs from 'node:fs';
import { messageOf } from '../../errors.ts';
import type { DecisionAnswer, DecisionQuestion, DecisionRequest } from '../../protocol/index.ts';
import { type DecisionExample, type LearnedDecisions, learnDecisions } from '../../rl/public.ts';
import { command, number, text, wrongUsage } from './arguments.ts';
import { COMMON, MODEL, openRuntime } from './model-arguments.ts';
import { printResult, readAll } from './terminal.ts';

export const decide = command({
  name: 'decide',
  words: '[question]',
  about: 'the probability that something is true of the input, or of each choice or level',
  options: {
    choices: text('A,B', 'values to choose from, separated by commas'),
    levels: text('A,B', 'levels of a scale from low to high, separated by commas'),
    questions: text('FILE', 'a JSON file with the questions of a request'),
    orders: number('prompts of each choice, with its values in rotated orders'),
    learn: text(
      'FILE',
      'learns the decisions with answers in the lines of a JSON file, in place of a question',
    ),
    name: text('NAME', 'with --learn: the registered model that learns them'),
    model: MODEL,
    ...COMMON,
  },
  async run({ options, names }, terminal) {
    const { model, orders, choices, levels, questions: file, learn, name } = options;
    const [question, ...others] = names as string[];
    if ((learn === undefined) !== (name === undefined))
      throw wrongUsage('expected --learn FILE and --name NAME together');
    if (learn !== undefined) {
      const unused = { question, '--choices': choices, '--levels': levels, '--questions': file };
      for (const [word, given] of Object.entries(unused))
        if (given !== undefined) throw wrongUsage(`expected no ${word} with --learn`);
      const examples = readLines(learn);
      await using runtime = await openRuntime(options, terminal);
      const base_model = model ?? runtime.servedModels()[0]!;
      const { id } = await runtime.models.create({ base_model, name: name!, return_existing: true });
      const learned = await learnDecisions({ service: runtime, model: id, examples, orders });
      return printResult(terminal, options.json, learned, toRows(learned));
    }
    if (others.length > 0)
      throw wrongUsage('expected one question; more of them go into a file for --questions');
    if ((question === undefined) === (file === undefined))
      throw wrongUsage('expected a question, or a file with --questions FILE');
    const questions = file === undefined ? [toQuestion(question!, choices, levels)] : readQuestions(file);
    const input = await readAll(terminal.input);
    await using runtime = await openRuntime(options, terminal);
    const response = await runtime.decide({ model, orders, input, questions });
    const rows = Object.entries(response.answers).flatMap(([key, answer]) => rowsOf(answer, key));
    printResult(terminal, options.json, response, rows);
  },
});

function toQuestion(
  instructions: string,
  choices: string | undefined,
  levels: string | undefined,
): DecisionQuestion {
  if (choices !== undefined && levels !== undefined)
    throw wrongUsage('expected --choices or --levels, got both');
  if (choices !== undefined)
    return {
      type: 'choice',
      instructions,
      choices: choices.split(',').map((value) => ({ value: value.trim() })),
    };
  if (levels !== undefined)
    return {
      type: 'score',
      instructions,
      levels: levels.split(',').map((label) => ({ label: label.trim() })),
    };
  return { type: 'predicate', instructions };
}

function readLines(file: string): DecisionExample[] {
  try {
    const lines = fs.readFileSync(file, 'utf8').split('\n');
    return lines.filter((line) => line.trim() !== '').map((line) => JSON.parse(line) as DecisionExample);
  } catch (error) {
    throw wrongUsage(`--learn: expected a file with lines of JSON: ${messageOf(error)}`);
  }
}

const MEASURES = ['accuracy', 'loss', 'brier', 'ece', 'eceOfChance', 'temperature', 'noise'] as const;

/** Returns a line per measure of held-out examples, before and after, and what became of the model. */
function toRows({ kept, checkpoint, report }: LearnedDecisions): string[][] {
  const measured = Object.entries(report.kinds).flatMap(([kind, { before, after }]) =>
    MEASURES.map((name) => [kind, name, before[name].toFixed(4), after[name].toFixed(4)]),
  );
  return [...measured, kept ? ['kept', checkpoint!] : ['not kept', 'the model is as it was']];
}

function readQuestions(file: string): DecisionRequest['questions'] {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8')) as DecisionRequest['questions'];
  } catch (error) {
    throw wrongUsage(`--questions: expected a file with JSON: ${messageOf(error)}`);
  }
}

/** Returns a line per value, under the name of the question. */
function rowsOf(answer: DecisionAnswer, key: string): string[][] {
  const name = answer.name ?? key;
  if (answer.type === 'predicate') return [[name, 'yes', answer.probability.toFixed(4)]];
  const values = answer.probabilities.map((one) => ('label' in one ? one.label : String(one.value)));
  return answer.probabilities.map(({ probability }, i) => [name, values[i]!, probability.toFixed(4)]);
}
