/** Fields about draft tokens: `speculation` and `prediction`. */
import * as s from './schema.ts';

/** Methods of drafting. */
export const DRAFT_METHODS = ['ngram', 'suffix', 'draft', 'mtp'] as const;
/** Maximum number of draft tokens per step, and of preceding tokens that an n-gram must match. */
export const MAX_DRAFTS = 32;

export const speculationDefinitions: s.Definitions = {
  Speculation: {
    ...s.when({ type: 'object' }, s.ref('SpeculationSettings'), {
      enum: [false, 'auto', null],
      expected: 'false, auto, an object with a method, or null',
    }),
    description: 'Whether tokens are drafted, and how.',
    tsType: "false | 'auto' | SpeculationSettings",
  },
  SpeculationSettings: s.object('One way to draft tokens.', ['method'], {
    method: s.oneOf(
      "`ngram` drafts what followed the same tokens in prompt or answer; `suffix` also what followed them in other answers of this runtime with the same adapter and `cache_salt`; `draft` uses a smaller model, an EAGLE-3 file or an assistant of Gemma 4; `mtp` uses the model's own layers for multi-token prediction, if its file has them.",
      DRAFT_METHODS,
    ),
    maxTokens: s.integerOrNull('Maximum number of draft tokens per step; fewer where more would cost time.', {
      default: 15,
      minimum: 1,
      maximum: MAX_DRAFTS,
    }),
    model: s.stringOrNull(
      'With `draft`, the smaller model, EAGLE-3 file or assistant: a path, a name or an `hf:` URI of a GGUF file with the same vocabulary.',
      { minLength: 1 },
    ),
    minMatch: s.integerOrNull('With `ngram` and `suffix`: how many tokens before the draft must match.', {
      default: 3,
      minimum: 1,
      maximum: MAX_DRAFTS,
    }),
  }),
  Prediction: s.object(
    'What the answer will mostly be.',
    ['type', 'content'],
    {
      type: s.constant('The only kind there is.', 'content'),
      content: {
        description: 'The text, whole or as parts.',
        type: ['string', 'array'],
        items: s.ref('PredictionPart'),
      },
    },
    { type: ['object', 'null'] },
  ),
  PredictionPart: s.object('A part of a prediction.', ['type', 'text'], {
    type: s.constant('The only kind there is.', 'text'),
    text: s.string('The text.'),
  }),
};
