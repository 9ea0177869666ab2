/** Logits processors that a request refers to by name. */
import * as s from './schema.ts';

export const logitsProcessorDefinitions: s.Definitions = {
  LogitsProcessorItem: {
    type: ['string', 'object'],
    minLength: 1,
    ...s.when({ type: 'object' }, s.ref('LogitsProcessorConstructor')),
    description: 'A registered name, or how to build a processor.',
    tsType: 'string | LogitsProcessorConstructor',
  },
  LogitsProcessorConstructor: s.branch(
    'Builds a registered logits processor for one request.',
    ['qualname'],
    {
      qualname: s.string('Its registered name.', { minLength: 1 }),
      args: {
        description: 'Positional arguments.',
        type: ['array', 'null'],
        tsType: 'readonly unknown[] | null',
      },
      kwargs: {
        description: 'Keyword arguments.',
        type: ['object', 'null'],
        tsType: 'Record<string, unknown> | null',
      },
    },
  ),
};
