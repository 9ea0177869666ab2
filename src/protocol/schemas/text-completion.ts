/** The text completion request: a prompt without a chat template. Fields shared with chats have the same schema. */
import { chatCompletionDefinitions, FIELD_GROUPS, IGNORED_FIELDS } from './chat-completion.ts';
import { MAX_CHOICES } from './sampling.ts';
import * as s from './schema.ts';

/** Fields of a chat completion request that are absent here or have another meaning. */
const CHAT_ONLY = new Set([
  ...['messages', 'documents', 'chat_template', 'chat_template_kwargs', 'mm_processor_kwargs'],
  ...['media_io_kwargs', 'return_prompt_text', 'return_token_offsets', 'return_assistant_tokens_mask'],
  ...['reasoning_effort', 'reasoning', 'thinking_token_budget', 'include_reasoning'],
  'reasoning_budget_message',
  ...['add_generation_prompt', 'continue_final_message', 'add_special_tokens', 'echo'],
  ...['max_completion_tokens', 'max_tokens', 'logprobs', 'top_logprobs', 'return_routed_experts'],
  ...Object.keys(FIELD_GROUPS['Tools']!),
  ...IGNORED_FIELDS,
]);

const shared = Object.entries(chatCompletionDefinitions['ChatCompletionRequest']!.properties!).filter(
  ([field]) => !CHAT_ONLY.has(field),
);

/** Fields of a chat completion request that have the same meaning here. */
export const TEXT_FIELDS: readonly string[] = shared.map(([field]) => field);

const prompt = s.textsOrIds(
  'What to continue: a text, token ids, or a list of either. Each prompt of a list has its own `n` choices, in order. The text of a special token is read as that token.',
);

export const textCompletionDefinitions: s.Definitions = {
  TextCompletionRequest: s.object(
    'A text completion request, the same in process and over HTTP. `undefined` counts as absent everywhere.',
    ['prompt'],
    {
      prompt,
      suffix: s.stringOrNull(
        'Text after the answer: the model fills in what lies between prompt and suffix. `UNSUPPORTED` if it has no tokens for that.',
        { bounds: 'not with `echo`; only with prompts that are texts' },
      ),
      max_tokens: s.integerOrNull(
        'Maximum number of tokens of one choice. Null: the rest of the context. 0 generates nothing, to score a prompt with `echo`.',
        { default: 16, minimum: 0 },
      ),
      echo: s.flagOrNull(
        false,
        'Puts the prompt before the text, and its tokens before those of `logprobs`.',
      ),
      logprobs: s.integerOrNull(
        'Returns the log-probability of every token, and of this many best tokens at its position; -1 for the whole vocabulary.',
        { minimum: -1, bounds: 'at most `maxLogprobs`' },
      ),
      best_of: s.integerOrNull(
        'Generates this many choices and returns the `n` with the highest log-probability per token. Absent: `n`.',
        { minimum: 1, maximum: MAX_CHOICES, bounds: 'at least `n`; `n` with `stream` or beam search' },
      ),
      add_special_tokens: s.flagOrNull(
        true,
        'Adds the special tokens of the tokenizer around a text. Token ids are not changed.',
      ),
      ...Object.fromEntries(shared),
    },
  ),
};
