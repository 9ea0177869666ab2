/** The methods of a runtime that run in the process of its models. */
import { type CheckedService, INNER } from '../checked-service.ts';
import { METHODS as SERVICE_METHODS } from '../service.ts';

/** How a method is called. */
export type IsolatedMethod = {
  /** Which argument has the call's options. */
  readonly options?: number;
  /** The reference of the model that it uses. Absent: it writes to the home folder, in the process of the whole runtime. */
  readonly reference?: (args: readonly unknown[]) => unknown;
};

const field =
  (index: number, name: string): NonNullable<IsolatedMethod['reference']> =>
  (args) =>
    (args[index] as Record<string, unknown> | null | undefined)?.[name];
const first: NonNullable<IsolatedMethod['reference']> = ([given]) => given;
const ANSWER: IsolatedMethod = { options: 1, reference: field(0, 'model') };

/** By name: of the inner service, of the runtime, and of its resources as `models.create`. What is not here reads files, or calls these. */
export const METHODS: Readonly<Record<string, IsolatedMethod>> = {
  ...Object.fromEntries(Object.keys(SERVICE_METHODS).map((name) => [name, ANSWER])),
  tokenize: { reference: field(1, 'model') },
  detokenize: { reference: field(1, 'model') },
  contextSize: { reference: first },
  unload: { reference: first },
  soundWindows: {},
  'models.export': ANSWER,
  'adapters.load': { options: 1, reference: field(0, 'base') },
  'adapters.unload': { reference: first },
  train: { options: 1 },
  sft: { options: 1 },
  'models.create': { options: 1 },
  'models.delete': { options: 1 },
  log: { options: 2 },
  'models.log': { options: 2 },
  'checkpoints.delete': { options: 2 },
  'checkpoints.prune': { options: 2 },
  'trainingJobs.cancel': { options: 1 },
  'trainingRuns.create': { options: 1 },
  'trainingRuns.retrieve': { options: 1 },
  'trainingRuns.call': { options: 3 },
  'trainingRuns.result': { options: 2 },
  'trainingRuns.close': { options: 1 },
  'trainingRuns.delete': { options: 1 },
};

/** A function that is found by a method's name. */
type Found = {
  readonly owner: Record<string, (...args: unknown[]) => unknown>;
  readonly name: string;
};

/** The object that has the method, and what it is called there. */
export function findMethod(runtime: CheckedService, path: string): Found {
  const [group, name] = path.includes('.') ? path.split('.') : [null, path];
  const isInner = name! in SERVICE_METHODS || name === 'log';
  const owner = group
    ? (runtime as unknown as Record<string, unknown>)[group]
    : isInner
      ? runtime[INNER]
      : runtime;
  return { owner: owner as Found['owner'], name: name! };
}
