/** The request for embeddings: OpenAI's, with fields of vLLM. */
import { chatFields } from './chat-completion.ts';
import * as s from './schema.ts';

export const embeddingDefinitions: s.Definitions = {
  EmbeddingRequest: s.object('A request for embeddings, the same in process and over HTTP.', ['input'], {
    input: s.textsOrIds('What to embed: a text, token ids, or a list of either. Each gets a vector.'),
    model: s.stringOrNull(
      'An embedding model: a path, an `hf:` URI or an alias. Absent, null or empty: the default model.',
    ),
    dimensions: s.integerOrNull(
      'Truncates each vector to this many numbers, for models trained for it. Absent: all.',
      { minimum: 1, bounds: 'at most those of the model' },
    ),
    encoding_format: s.oneOf(
      '`base64` returns each vector as one text: its 32-bit floats, little-endian.',
      ['float', 'base64', null],
      { default: 'float' },
    ),
    normalize: s.flagOrNull(true, 'Whether vectors have the length 1, after `dimensions`.'),
    add_special_tokens: s.flagOrNull(
      true,
      'Adds the special tokens of the tokenizer around a text. Token ids are not changed.',
    ),
    truncate_prompt_tokens: s.integerOrNull(
      'Keeps only this many tokens at the beginning of a text, and its final special token; -1 keeps as many as the model accepts. Absent: a longer text is an error.',
      s.ALL_OR_SOME,
    ),
    user: s.stringOrNull('No effect.'),
    ...chatFields('timeout_ms', 'keep_alive'),
  }),
};
