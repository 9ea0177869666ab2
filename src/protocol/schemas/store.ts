/** Options of what is kept on disk: runs, reports, checkpoints. */
import type { Definitions } from './schema.ts';

/** Definitions of these options. */
export const storeDefinitions: Definitions = {
  PruneRequest: {
    description: 'Which checkpoints to keep.',
    type: 'object',
    required: ['keep'],
    properties: {
      keep: { description: 'Number of the best to keep.', type: 'integer', minimum: 1 },
      metric: {
        description: 'Metric to compare.',
        type: 'string',
        minLength: 1,
        default: 'train/reward',
      },
      goal: {
        description: 'Whether a higher or a lower value is better.',
        enum: ['max', 'min'],
        default: 'max',
      },
    },
    additionalProperties: false,
  },
  ReportOptions: {
    description: 'Options of a report.',
    title: 'options',
    type: 'object',
    properties: {
      compare: {
        description: 'Id or name of another model, whose curves are drawn beside.',
        type: ['string', 'null'],
      },
    },
    additionalProperties: false,
  },
  RecorderOptions: {
    description: 'What is recorded.',
    title: 'options',
    type: 'object',
    required: ['model'],
    properties: {
      model: {
        description:
          'The model that answers all requests, whatever model they name: an id or name, at a step with `name@3`.',
        type: 'string',
        minLength: 1,
        expected: 'the id or name of a model',
      },
      seed: {
        description:
          'Gives each request without a `seed` one of its own, the same in a repeated run. Absent: none.',
        type: 'integer',
        minimum: -(2 ** 53) + 1,
        maximum: 2 ** 53 - 1,
      },
    },
    additionalProperties: false,
  },
};
