/** The request for a transcript of a sound: OpenAI's, with fields of chat completions. */
import { chatFields } from './chat-completion.ts';
import * as s from './schema.ts';

/** Formats of a transcript that include times of words. */
export const TIMED_FORMATS = ['verbose_json', 'srt', 'vtt', 'diarized_json'] as const;

export const transcriptionDefinitions: s.Definitions = {
  TranscriptionRequest: s.object(
    'A request for a transcript of a sound, the same in process and over HTTP, where it is a form.',
    ['file'],
    {
      file: {
        description: 'A WAV, MP3 or FLAC sound: base64 text or a `data:` URI, in process also bytes.',
        bounds: 'within the limits of the option `media`',
        tsType: 'string | Uint8Array',
      },
      ...chatFields('model'),
      language: s.stringOrNull(
        'Language of the speech, such as `en` or `pt-BR`. Absent: the model detects it.',
        {
          pattern: '^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$',
          expected: 'a language such as en or pt-BR',
        },
      ),
      prompt: s.stringOrNull('Names and words that occur in the sound, or what was said before.'),
      response_format: s.oneOf(
        '`text`: the transcript alone. The others need timestamps, which models do not provide here: they are refused.',
        ['json', 'text', ...TIMED_FORMATS, null],
        { default: 'json' },
      ),
      stream: s.flagOrNull(false, 'Returns events as tokens are generated.'),
      temperature: s.numberOrNull('As in a chat completion, but 0 by default.', { default: 0, minimum: 0 }),
      include: s.listOrNull('`logprobs`: the tokens with their log-probabilities, not in a stream.', {
        type: 'string',
        enum: ['logprobs'],
      }),
      timestamp_granularities: s.listOrNull('Refused unless empty: models do not provide timestamps here.', {
        type: 'string',
      }),
      chunking_strategy: s.oneOf(
        '`auto` splits a long sound into overlapping windows of 30 seconds and joins their texts. Absent: a sound that fits into the context is processed as a whole, others in windows.',
        ['auto', null],
        { default: null },
      ),
      user: s.stringOrNull('No effect.'),
      ...chatFields('seed', 'top_p', 'max_completion_tokens', 'timeout_ms', 'keep_alive', 'adapters'),
    },
  ),
};
