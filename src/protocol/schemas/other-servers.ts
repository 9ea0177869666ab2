/** Bodies of endpoints that vLLM and llama.cpp have beside OpenAI's: token ids in and out, texts between two others. */
import * as s from './schema.ts';

const model = s.stringOrNull('Which model answers, as in a chat completion request.');
const logprob = {
  token_id: { description: 'The token.', type: 'integer', minimum: 0 },
  logprob: s.number('Its log-probability.'),
} as const satisfies Readonly<Record<string, s.Schema>>;

const count = (description: string): s.Schema => s.integerOrNull(description, { minimum: 0 });

/** Returns an object with these fields and any others, or null. */
const shapeOrNull = (description: string, properties: NonNullable<s.Schema['properties']>): s.Schema => ({
  ...s.shape(description, [], properties),
  type: ['object', 'null'],
});

export const otherServerDefinitions: s.Definitions = {
  PrefixCacheQuery: s.object('Which prefix caches are emptied, as in vLLM.', [], {
    reset_running_requests: s.flagOrNull(
      false,
      'Takes the cells of running requests, too: their tokens are computed again, and their answers stay the same.',
    ),
    reset_external: s.flagOrNull(
      false,
      'Of vLLM; true is refused: saved prompts are files, which their owner deletes.',
    ),
  }),
  GenerateBody: s.object('Tokens to continue, as in vLLM.', ['token_ids'], {
    token_ids: s.list('The prompt.', { type: 'integer', minimum: 0 }, { minItems: 1 }),
    sampling_params: s.jsonObject(
      'Fields of a text completion request: how the prompt is continued. Without `max_tokens` as far as the context goes.',
    ),
    model,
    request_id: s.string('Id of the request and of the response.', { minLength: 1 }),
    output_mode: s.oneOf('`text` adds the text of each choice. Default `tokens`.', ['tokens', 'text', null]),
    return_token_ids: s.flagOrNull(false, 'Returns the tokens of the prompt, too.'),
    stream: s.flagOrNull(false, 'Returns the tokens in chunks as they are generated.'),
    stream_options: s.ref('StreamOptions', 'What a stream returns in addition. Only with `stream`.'),
    cache_salt: s.stringOrNull('As in a chat completion request.', { minLength: 1 }),
    priority: { description: 'As in a chat completion request.', type: 'integer', default: 0 },
    kv_transfer_params: s.jsonObject('As in a chat completion request.'),
    ec_transfer_params: s.refused('pictures and sounds are read by the process that answers'),
    features: s.refused('prompts of tokens have no pictures or sounds'),
    content_parts: s.refused('prompts of tokens have no pictures or sounds'),
  }),
  DerenderBody: s.object(
    'Answers of `/inference/v1/generate`, one per prompt, to be shown as a text completion.',
    ['generate_responses'],
    {
      generate_responses: s.list('The answers.', s.ref('GeneratedTokens'), { minItems: 1 }),
      model: s.stringOrNull('Whose tokenizer. Absent, null or empty: the default model.'),
      prompt_tokens: s.listOrNull(
        'Number of tokens of each prompt, for the usage. Absent: those of the answers.',
        { type: 'integer', minimum: 0 },
        { bounds: 'as many as answers' },
      ),
    },
  ),
  ParseAnswerRequest: s.object(
    'An answer of `/inference/v1/generate`, to be read as the answer to a chat completion request.',
    ['generate_response'],
    {
      generate_response: s.ref('GeneratedTokens', 'The answer.'),
      chat_request: {
        ...s.jsonObject(
          'The chat completion request whose prompt was continued: it says how reasoning, calls and stop strings are read. Absent: all text is content.',
        ),
        tsType: 'ChatCompletionRequest | null',
      },
      model: s.stringOrNull(
        'Whose tokenizer, template and formats. Absent, null or empty: the model of `chat_request`.',
      ),
      prompt_tokens: count(
        'Number of tokens of the prompt, for the usage. Absent: as in the answer, otherwise that of the messages.',
      ),
    },
  ),
  GeneratedTokens: s.shape('An answer of `/inference/v1/generate`.', ['choices'], {
    choices: s.list('Its choices.', s.ref('GeneratedChoice')),
    request_id: s.stringOrNull('Id of the request.'),
    created: count('Seconds since 1970.'),
    usage: s.ref('GeneratedUsage', 'Its token counts.'),
    prompt_logprobs: s.listOrNull('Log-probabilities of the tokens of the prompt.', {
      type: ['object', 'null'],
    }),
    kv_transfer_params: s.jsonObject('The handle of a saved prompt.'),
  }),
  GeneratedUsage: shapeOrNull('Token counts of an answer.', {
    prompt_tokens: count('Tokens of the prompt.'),
    prompt_tokens_details: shapeOrNull('Parts of these.', {
      cached_tokens: count('Tokens that the prefix cache saved.'),
    }),
    completion_tokens_details: shapeOrNull('Parts of the tokens of the choices.', {
      accepted_prediction_tokens: count('Draft tokens that were right.'),
      rejected_prediction_tokens: count('Draft tokens that were not.'),
    }),
  }),
  GeneratedChoice: s.shape('The tokens of one choice.', ['token_ids'], {
    token_ids: s.list('The tokens.', logprob.token_id),
    finish_reason: s.oneOf('Why it ended.', ['stop', 'length', null]),
    stop_reason: {
      description: 'The token or the text that ended it.',
      type: ['integer', 'string', 'null'],
    },
    logprobs: s.ref('GeneratedLogprobs', 'Log-probabilities of the tokens.'),
  }),
  GeneratedLogprobs: {
    ...s.shape('Log-probabilities of tokens.', ['content'], {
      content: s.list('One per token.', s.ref('GeneratedLogprob')),
    }),
    type: ['object', 'null'],
  },
  GeneratedLogprob: s.shape('A token with its log-probability.', ['token_id', 'logprob'], {
    ...logprob,
    top_logprobs: s.list(
      'The most probable tokens at its place.',
      s.shape('A token with its log-probability.', ['token_id', 'logprob'], logprob),
    ),
  }),
  InfillBody: s.shape(
    'Two texts, as in llama.cpp: the model writes what lies between them. Further fields are those of a text completion request.',
    ['input_prefix', 'input_suffix'],
    {
      input_prefix: s.string('Text before the answer.'),
      input_suffix: s.string('Text after the answer.'),
      input_extra: s.listOrNull(
        'Texts of other files: none, as models are asked for one file.',
        {},
        { maxItems: 0 },
      ),
      prompt: s.oneOf('The begin of the answer: none.', ['', null]),
      n_predict: s.integerOrNull('Maximum number of tokens; -1: as many as the context holds.', {
        default: -1,
        minimum: -1,
      }),
      n: s.oneOf('Number of answers.', [1, null]),
    },
  ),
};
