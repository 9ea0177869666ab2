/** `onpolicy models` and `onpolicy checkpoints`: a command -> registered models and checkpoints, listed or changed. */
import type { MetricRecord, Page } from '../../index.ts';
import { command, type Given, number, text, wrongUsage } from './arguments.ts';
import { COMMON, findModel, openRuntime } from './model-arguments.ts';
import { print, printJson, printResult, type Terminal } from './terminal.ts';

const PAGING = {
  after: text('ID', 'the page after this item'),
  limit: number('entries of a page'),
  order: text('ORDER', 'asc or desc'),
} as const;

export const models = command({
  name: 'models',
  words: '[action] [model]',
  about: 'registered models: list (default), create BASE --name N, show M, delete M',
  options: { name: text('NAME', 'of a model that is created'), ...PAGING, ...COMMON },
  async run({ options, names }, terminal) {
    await using runtime = await openRuntime(options, terminal);
    const [action = 'list', argument] = names;
    if (action === 'list') {
      const page = await runtime.models.list(toQuery(options));
      const shown = page.data.map(({ id, name, step, base_model }) => [
        id,
        name ?? '',
        String(step),
        base_model,
      ]);
      return printPage(terminal, options.json, page, [['id', 'name', 'step', 'base model'], ...shown]);
    }
    if (argument === undefined) throw wrongUsage(`models ${action}: expected a model, got nothing`);
    if (action === 'create') {
      const name = options.name ?? null;
      return printJson(terminal, await runtime.models.create({ base_model: argument, name }));
    }
    const model = await findModel(runtime, argument);
    if (action === 'show') return printJson(terminal, model);
    if (action === 'delete') return printJson(terminal, await runtime.models.delete(model.id));
    throw wrongUsage(`models: expected list, show, create or delete, got ${action}`);
  },
});

/** Lists, deletes and prunes the checkpoints of a model. */
export const checkpoints = command({
  name: 'checkpoints',
  words: '<model> [action] [step...]',
  about: 'checkpoints of a model: list (default), delete STEP..., prune --keep N --metric NAME',
  options: {
    keep: number('how many to keep when the others are pruned'),
    metric: text('NAME', 'the metric that ranks them'),
    goal: text('GOAL', 'max or min'),
    ...PAGING,
    ...COMMON,
  },
  async run({ options, names }, terminal) {
    const [idOrName, action = 'list', ...steps] = names as [string, ...string[]];
    await using runtime = await openRuntime(options, terminal);
    const { id } = await findModel(runtime, idOrName);
    if (action === 'delete')
      return printJson(terminal, await runtime.checkpoints.delete(id, { steps: steps.map(Number) }));
    if (action === 'prune') {
      const { keep, metric, goal } = options;
      const request = {
        keep: keep as number, // checked by the runtime
        ...(metric === undefined ? {} : { metric }),
        ...(goal === undefined ? {} : { goal: goal as 'max' | 'min' }),
      };
      return printJson(terminal, await runtime.checkpoints.prune(id, request));
    }
    if (action !== 'list') throw wrongUsage(`checkpoints: expected list, delete or prune, got ${action}`);
    const page = await runtime.checkpoints.list(id, toQuery(options));
    const shown = ['train/reward', 'loss/train', 'loss/entropy', 'train/probs_corr'];
    const rewards = await meansOf(runtime.runs.metrics(id), 'train/reward');
    const rows = page.data.map(({ step, metrics }) => {
      const values: Record<string, number | undefined> = { 'train/reward': rewards.get(step), ...metrics };
      return [String(step), ...shown.map((name) => values[name]?.toPrecision(4) ?? '')];
    });
    printPage(terminal, options.json, page, [['step', ...shown], ...rows]);
  },
});

/** Returns the mean of a logged metric by step. Rewards are logged at the step whose policy earned them. */
async function meansOf(records: AsyncIterable<MetricRecord>, name: string): Promise<Map<number, number>> {
  const sums = new Map<number, { sum: number; count: number }>();
  for await (const { step, metrics } of records) {
    const value = metrics[name];
    if (value === undefined) continue;
    const { sum, count } = sums.get(step) ?? { sum: 0, count: 0 };
    sums.set(step, { sum: sum + value, count: count + 1 });
  }
  return new Map([...sums].map(([step, { sum, count }]) => [step, sum / count]));
}

function toQuery({ after, limit, order }: Given<typeof PAGING>['options']) {
  return { after, limit, order: order as 'asc' | 'desc' | undefined }; // checked by the runtime
}

function printPage(terminal: Terminal, isJson: boolean, page: Page<unknown>, rows: string[][]): void {
  printResult(terminal, isJson, page, rows);
  if (page.has_more && !isJson) print(terminal, `more: --after ${page.last_id}`);
}
