/** Requests that compare or label texts: Jina's and Cohere's `rerank`, vLLM's `score` and `classify`. */
import { chatFields } from './messages.ts';
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
    'Whether the numbers of a model with a head become probabilities: by a sigmoid if there is one, by a softmax over several. False: as its head makes them.',
  ),
  truncate_prompt_tokens: s.integerOrNull(
    'Keeps only as much of the beginning of a text (of the document, in a pair) as makes this many tokens in all; -1: as the model takes. Absent: a longer text is an error.',
    s.ALL_OR_SOME,
  ),
  user: s.stringOrNull('No effect.'),
  ...chatFields('timeout_ms', 'keep_alive'),
});
const model = s.stringOrNull(
  'A model that ranks: a path, an `hf:` URI or an alias. Absent, null or empty: the default model.',
);
const instruction = s.stringOrNull(
  'What makes a document fit, for models whose prompt has an instruction, as Qwen3-Reranker. Absent: the one that they were trained with most.',
);

/** Definitions of these requests. */
export const rankDefinitions: s.Definitions = {
  RerankRequest: s.object('Documents to be ordered by how well they fit a query.', ['query', 'documents'], {
    query: s.string('What is looked for.'),
    documents: s.list(
      'What it is looked for in: texts, or objects with a `text`.',
      {
        type: ['string', 'object'],
        required: ['text'],
        properties: { text: s.string('Its text.') },
        expected: 'a text, or an object with one',
      },
      { minItems: 1, tsType: 'readonly (string | { readonly text: string })[]' },
    ),
    model,
    top_n: s.integerOrNull('Answers with so many of the best documents. Absent or 0: with all.', {
      minimum: 0,
    }),
    return_documents: s.flagOrNull(true, 'Whether results have the text of their document.'),
    instruction,
    ...common(false),
  }),
  ScoreRequest: s.object('Pairs of texts to be compared.', ['text_1', 'text_2'], {
    text_1: texts('A text that all of `text_2` are compared with, or as many as there are of those.'),
    text_2: texts('What it is compared with.'),
    model,
    instruction,
    ...common(false),
  }),
  ClassifyRequest: s.object('Texts to be labelled.', ['input'], {
    input: texts('A text or several, each of which gets a label.'),
    model,
    ...common(true),
  }),
};
