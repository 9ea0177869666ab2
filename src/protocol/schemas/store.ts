/** Options of data on disk: runs, reports, checkpoints. */
import * as s from './schema.ts';

export const storeDefinitions: s.Definitions = {
  PruneRequest: s.object('Which checkpoints to keep.', ['keep'], {
    keep: { description: 'Number of the best to keep.', type: 'integer', minimum: 1 },
    metric: s.string('Metric to compare, of training or logged. Checkpoints without it are kept.', {
      minLength: 1,
      default: 'train/reward',
    }),
    goal: s.oneOf('Whether a higher or a lower value is better.', ['max', 'min'], { default: 'max' }),
  }),
  ReportOptions: s.options('Options of a report.', [], {
    compare: s.stringOrNull('Id or name of another model, whose curves are drawn, too.'),
  }),
  RecorderOptions: s.options('What is recorded.', ['model'], {
    model: s.string(
      'The model that answers all requests, whatever model they name: an id or name, at a step with `name@3`.',
      { minLength: 1, expected: 'the id or name of a model' },
    ),
    seed: s.integer(
      'Gives each request without a `seed` one of its own, the same in a repeated run. Absent: none.',
      Number.MIN_SAFE_INTEGER,
    ),
    routedExperts: s.flag(
      false,
      'Whether choices keep the experts of their tokens, for `routing: "replay"`.',
    ),
    repetitionDetection: s.ref(
      'RepetitionDetection',
      '`repetition_detection` of each request without one. Absent: none.',
    ),
  }),
};
