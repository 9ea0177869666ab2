/** The request field that ends an answer whose last tokens repeat: vLLM's names and defaults. */
import * as s from './schema.ts';

const SIZE = { default: 0, maximum: 65_536 };

export const repetitionDetection: s.Schema = s.ref(
  'RepetitionDetection',
  'Ends an answer that loops: its last tokens are the same pattern several times in a row. The choice ends with the stop reason `repetition_detected` and the finish reason `length`, behind `min_tokens`. The prompt does not count.',
  { tsType: 'RepetitionDetection | null', bounds: 'not with beam search' },
);

export const repetitionDefinitions: s.Definitions = {
  RepetitionDetection: s.objectOrNull('When an answer counts as a loop.', {
    max_pattern_size: s.integer('Largest length of the pattern, in tokens. 0 turns it off.', 0, SIZE),
    min_pattern_size: s.integer('Smallest length of the pattern. 0 counts as 1.', 0, {
      ...SIZE,
      bounds: 'at most `max_pattern_size`',
    }),
    min_count: s.integer('How many times in a row the pattern must be there.', 0, {
      default: 0,
      maximum: 2 ** 31 - 1,
      bounds: 'at least 2, unless `max_pattern_size` is 0',
    }),
  }),
};
