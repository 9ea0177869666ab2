/** Requests that compare or label texts: Jina's and Cohere's `rerank`, vLLM's `score` and `classify`. */
import { chatFields } from './chat-completion.ts';
import * as s from './schema.ts';

const text: s.Schema = { type: 'string' };
const TEXTS = 'string | readonly string[]';
const texts = (description: string): s.Schema => ({
  description,
  type: ['string', 'array'],
  items: text,
  minItems: 1,
  tsType: TEXTS,
});

const common = (isActivated: boolean): NonNullable<s.Schema['properties']> => ({
  use_activation: s.flagOrNull(
    isActivated,
    "Whether the outputs of a model's head become probabilities: one output by a sigmoid, several by a softmax. False: the raw outputs.",
  ),
  truncate_prompt_tokens: s.integerOrNull(
    'Truncates a text (in a pair, the document) so that the input has this many tokens; -1: as many as the model accepts. Absent: a longer text is an error.',
    s.ALL_OR_SOME,
  ),
  user: s.stringOrNull('No effect.'),
  ...chatFields('timeout_ms', 'keep_alive'),
});
const model = s.stringOrNull(
  'A ranking model: a path, an `hf:` URI or an alias. Absent, null or empty: the default model.',
);
const instruction = s.stringOrNull(
  'What makes a document fit, for models whose prompt has an instruction, such as Qwen3-Reranker. Absent: the one they were mostly trained with.',
);

export const rankDefinitions: s.Definitions = {
  RerankRequest: s.object('Documents to order by how well they fit a query.', ['query', 'documents'], {
    query: s.string('The query.'),
    documents: s.list(
      'The documents to order: texts, or objects with a `text`.',
      {
        type: ['string', 'object'],
        required: ['text'],
        properties: { text: s.string('Its text.') },
        expected: 'a text, or an object with one',
      },
      { minItems: 1, tsType: 'readonly (string | { readonly text: string })[]' },
    ),
    model,
    top_n: s.integerOrNull('Returns only this many of the best documents. Absent or 0: all.', {
      minimum: 0,
    }),
    return_documents: s.flagOrNull(true, 'Whether results include the text of their document.'),
    instruction,
    ...common(false),
  }),
  ScoreRequest: s.object('Pairs of texts to compare.', ['text_1', 'text_2'], {
    text_1: texts('One text to compare with all of `text_2`, or a list of the same length.'),
    text_2: texts('The text or texts to compare it with.'),
    model,
    instruction,
    ...common(false),
  }),
  ClassifyRequest: s.object('Texts to label.', ['input'], {
    input: texts('One or more texts, each of which gets a label.'),
    model,
    ...common(true),
  }),
};
