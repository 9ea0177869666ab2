/** Options of what is kept on disk: runs, reports, checkpoints. */
import { type Definitions, flag, object, oneOf, orNull, string } from './schema.ts';

/** Definitions of these options. */
export const storeDefinitions: Definitions = {
  PruneRequest: object('Which checkpoints to keep.', ['keep'], {
    keep: { description: 'Number of the best to keep.', type: 'integer', minimum: 1 },
    metric: string('Metric to compare.', { minLength: 1, default: 'train/reward' }),
    goal: oneOf('Whether a higher or a lower value is better.', ['max', 'min'], { default: 'max' }),
  }),
  ReportOptions: object(
    'Options of a report.',
    [],
    {
      compare: orNull('string', 'Id or name of another model, whose curves are drawn beside.'),
    },
    { title: 'options' },
  ),
  RecorderOptions: object(
    'What is recorded.',
    ['model'],
    {
      model: string(
        'The model that answers all requests, whatever model they name: an id or name, at a step with `name@3`.',
        { minLength: 1, expected: 'the id or name of a model' },
      ),
      seed: {
        description:
          'Gives each request without a `seed` one of its own, the same in a repeated run. Absent: none.',
        type: 'integer',
        minimum: -(2 ** 53) + 1,
        maximum: 2 ** 53 - 1,
      },
      routedExperts: flag(
        false,
        'Whether choices keep the experts of their tokens, for `routing: "replay"`.',
      ),
    },
    { title: 'options' },
  ),
};
