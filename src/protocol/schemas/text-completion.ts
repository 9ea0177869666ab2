/** The text completion request: a prompt as it is, without a chat template. What it shares with chats has the same schema. */
import { chatCompletionDefinitions } from './chat-completion.ts';
import { LLAMA_SAMPLERS } from './llama-samplers.ts';
import { MAX_CHOICES } from './sampling.ts';
import { type Definitions, orNull, textsOrIds } from './schema.ts';

/** Fields of a chat completion request that mean the same here. */
export const TEXT_FIELDS = [
  'model',
  'frequency_penalty',
  'presence_penalty',
  'repetition_penalty',
  'logit_bias',
  'temperature',
  'top_p',
  'top_k',
  'min_p',
  ...LLAMA_SAMPLERS,
  'seed',
  'n',
  'use_beam_search',
  'length_penalty',
  'min_tokens',
  'stop',
  'stop_token_ids',
  'include_stop_str_in_output',
  'ignore_eos',
  'allowed_token_ids',
  'bad_words',
  'response_format',
  'structured_outputs',
  'logits_processors',
  'inference_xargs',
  'prompt_logprobs',
  'return_tokens_as_token_ids',
  'return_token_ids',
  'stream',
  'stream_options',
  'skip_special_tokens',
  'spaces_between_special_tokens',
  'request_id',
  'user',
  'truncate_prompt_tokens',
  'context_shift',
  'n_keep',
  'priority',
  'speculation',
  'prediction',
  'cache_salt',
  'timeout_ms',
  'keep_alive',
  'adapters',
  'kv_transfer_params',
] as const;

const shared = chatCompletionDefinitions['ChatCompletionRequest']!.properties!;

const prompt = textsOrIds(
  'What to continue: a text, token ids, or a list of either. Each prompt of a list has its own `n` choices, in order. The texts of special tokens are read as those.',
);

/** Definitions of the text completion request. */
export const textCompletionDefinitions: Definitions = {
  TextCompletionRequest: {
    description:
      'A text completion request, the same in process and over HTTP. `undefined` counts as absent everywhere.',
    type: 'object',
    required: ['prompt'],
    properties: {
      prompt,
      suffix: orNull('string', {
        description:
          'Text that follows what is written: the model fills in what lies between. `UNSUPPORTED` where it has no tokens for that.',
        bounds: 'not with `echo`; only with prompts that are texts',
      }),
      max_tokens: orNull('integer', {
        description:
          'Most tokens of one choice. Null: what is left of the context. 0 writes nothing, for the log-probabilities of a prompt with `echo`.',
        default: 16,
        minimum: 0,
      }),
      echo: orNull('boolean', {
        description: 'Puts the prompt before the text, and its tokens before those of `logprobs`.',
        default: false,
      }),
      logprobs: orNull('integer', {
        description:
          'Reports the log-probability of every token, and of this many best tokens there; -1 for the whole vocabulary.',
        minimum: -1,
        bounds: 'at most `maxLogprobs`',
      }),
      best_of: orNull('integer', {
        description:
          'Writes this many choices and gives the `n` of the highest log-probability per token. Absent: `n`.',
        minimum: 1,
        maximum: MAX_CHOICES,
        bounds: 'at least `n`; `n` with `stream` or beam search',
      }),
      add_special_tokens: orNull('boolean', {
        description: 'Adds the tokens that the model wants around a text. Prompts of ids stay as they are.',
        default: true,
      }),
      ...Object.fromEntries(TEXT_FIELDS.map((field) => [field, shared[field]!])),
    },
    additionalProperties: false,
  },
};
