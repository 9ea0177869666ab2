/** Requests of every kind, with all of their parts filled in: what the extremes take the place of. */
import { definitions } from '../../src/protocol/schemas/index.ts';
import type { Form } from './draws.ts';

const fieldsOf = (name: string): string[] => Object.keys(definitions[name]!.properties!);

const ID = '0f8fad5b-d9cb-469f-a165-70867728950e';
const messages = [{ role: 'user', content: 'Hi' }];
const tool = {
  type: 'function',
  function: {
    name: 'f',
    description: 'd',
    parameters: { type: 'object', properties: { a: { type: 'string' } } },
    strict: true,
  },
};
const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{"a":"b"}' } };

/** Completions. Each is short when it is let through. */
export const COMPLETION: Form = {
  fields: fieldsOf('ChatCompletionRequest'),
  bases: [
    { messages, max_tokens: 2 },
    {
      messages,
      max_tokens: 3,
      temperature: 1,
      top_p: 0.9,
      top_k: 5,
      min_p: 0.1,
      seed: 1,
      n: 2,
      stop: ['a', 'b'],
      stop_token_ids: [5],
      logit_bias: { 5: 1 },
      bad_words: ['c'],
      frequency_penalty: 0.1,
      presence_penalty: 0.1,
      repetition_penalty: 1.1,
      min_tokens: 1,
      logprobs: true,
      top_logprobs: 2,
    },
    {
      messages: [
        { role: 'system', content: 'Be short.' },
        { role: 'developer', content: [{ type: 'text', text: 'a' }], name: 'n', tools: [tool] },
        { role: 'user', content: [{ type: 'text', text: 'Hi' }, 'there'], name: 'n' },
        { role: 'assistant', content: null, tool_calls: [call], reasoning: 'r', refusal: null },
        { role: 'tool', content: 'x', tool_call_id: 'a' },
        { role: 'narrator', content: 'y', name: 'z' },
        ...messages,
      ],
      max_completion_tokens: 2,
      tools: [tool],
      tool_choice: 'auto',
      parallel_tool_calls: true,
      chat_template_kwargs: { a: 1 },
      documents: [{ title: 't', text: 'x' }],
    },
    {
      messages,
      max_tokens: 2,
      tools: [tool],
      tool_choice: { type: 'function', function: { name: 'f' } },
      reasoning_effort: 'low',
      request_id: 'r',
      user: 'u',
      cache_salt: 's',
    },
    {
      messages,
      max_tokens: 2,
      response_format: {
        type: 'json_schema',
        json_schema: {
          name: 'x',
          schema: { type: 'object', properties: { a: { type: 'integer' } } },
          strict: true,
        },
      },
    },
    {
      messages: [
        { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
        { role: 'function', name: 'f', content: 'x' },
        { role: 'assistant', tool_calls: [{ id: 'a', type: 'custom', custom: { name: 'g', input: 'x' } }] },
        { role: 'user', content: [{ type: 'file', file: { file_data: 'aGk=', filename: 'a.txt' } }] },
      ],
      max_tokens: 2,
      functions: [{ name: 'f', description: 'd', parameters: { type: 'object' } }],
      function_call: { name: 'f' },
      reasoning_effort: 'none',
    },
    {
      messages,
      max_tokens: 2,
      tools: [
        tool,
        {
          type: 'custom',
          custom: {
            name: 'g',
            description: 'd',
            format: { type: 'grammar', grammar: { syntax: 'regex', definition: 'a' } },
          },
        },
      ],
      tool_choice: {
        type: 'allowed_tools',
        allowed_tools: { mode: 'required', tools: [{ type: 'custom', custom: { name: 'g' } }] },
      },
    },
    { messages, max_tokens: 2, structured_outputs: { regex: '[a-c]+', disable_any_whitespace: true } },
    { messages, max_tokens: 2, structured_outputs: { choice: ['a', 'b'] } },
    { messages, max_tokens: 2, structured_outputs: { json: { type: 'string', maxLength: 3 } } },
    { messages, max_tokens: 2, structured_outputs: { grammar: 'root ::= "a" | "b"' } },
    {
      messages,
      max_tokens: 2,
      response_format: {
        type: 'structural_tag',
        format: { type: 'tag', begin: '<a>', content: { type: 'any_text' }, end: '</a>' },
      },
    },
    { messages, max_tokens: 2, n: 2, use_beam_search: true, length_penalty: 1 },
    {
      messages,
      max_tokens: 2,
      stream_options: { include_usage: true, continuous_usage_stats: false },
      stream: true,
    },
    { messages, max_tokens: 2, prompt_logprobs: 1, truncate_prompt_tokens: 4, allowed_token_ids: [5, 6] },
    { messages, max_tokens: 2, logits_processors: [{ qualname: 'q', args: [1], kwargs: { a: 1 } }] },
    { messages, max_tokens: 2, inference_xargs: { a: [1] }, kv_transfer_params: { do_remote_decode: false } },
  ],
};

/** Text completions. */
export const TEXT: Form = {
  fields: fieldsOf('TextCompletionRequest'),
  bases: [
    { prompt: 'a', max_tokens: 2 },
    {
      prompt: ['a', 'b'],
      max_tokens: 2,
      echo: true,
      logprobs: 1,
      n: 2,
      best_of: 3,
      temperature: 1,
      stop: ['x'],
      request_id: 'r',
      add_special_tokens: false,
    },
    { prompt: [5, 6], max_tokens: 0, echo: true, logprobs: 0, prompt_logprobs: 1, return_token_ids: true },
    { prompt: [[5], [6, 7]], max_tokens: 2, stream: true, stream_options: { include_usage: true } },
    { prompt: 'a', suffix: 'b', max_tokens: 2, structured_outputs: { regex: 'a+' }, bad_words: ['q'] },
  ],
};

const turn = { role: 'user', content: [{ type: 'text', text: 'Hi' }] };

/** Requests of the messages API. */
export const MESSAGE: Form = {
  fields: fieldsOf('MessageRequest'),
  bases: [
    { messages, max_tokens: 2 },
    {
      messages: [
        {
          role: 'user',
          content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: '' } }],
        },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'a', signature: 's' },
            { type: 'tool_use', id: 'c', name: 'f', input: { a: 1 } },
          ],
        },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 'c', content: [{ type: 'text', text: 'x' }] }],
        },
      ],
      max_tokens: 2,
      tools: [{ name: 'f', description: 'd', input_schema: { type: 'object' }, strict: true }],
      tool_choice: { type: 'tool', name: 'f', disable_parallel_tool_use: true },
    },
    {
      messages: [
        turn,
        { role: 'user', content: [{ type: 'document', title: 't', source: { type: 'text', data: 'x' } }] },
      ],
      max_tokens: 2,
      system: [{ type: 'text', text: 's' }],
      thinking: { type: 'enabled', budget_tokens: 1024, display: 'omitted' },
      output_config: { effort: 'low', format: { type: 'json_schema', schema: { type: 'integer' } } },
      stop_sequences: ['x'],
      temperature: 0.5,
      top_k: 3,
      stream: false,
      metadata: { user_id: 'u' },
    },
  ],
};

/** Requests of the responses API. */
export const RESPONSE: Form = {
  fields: fieldsOf('ResponseRequest'),
  bases: [
    { input: 'a', max_output_tokens: 2 },
    {
      input: [
        { role: 'user', content: [{ type: 'input_image', image_url: 'data:,', detail: 'low' }] },
        { type: 'reasoning', id: 'r', summary: [], content: [{ type: 'reasoning_text', text: 'a' }] },
        { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c', output: 'x' },
        {
          type: 'message',
          role: 'assistant',
          content: [{ type: 'output_text', text: 'x', annotations: [] }],
        },
      ],
      max_output_tokens: 2,
      instructions: 'i',
      tools: [
        { type: 'function', name: 'f', description: 'd', parameters: { type: 'object' }, strict: true },
      ],
      tool_choice: { type: 'function', name: 'f' },
      reasoning: { effort: 'low', summary: 'auto' },
    },
    {
      input: [{ role: 'user', content: 'a' }],
      max_output_tokens: 2,
      text: { format: { type: 'json_schema', name: 'n', schema: { type: 'integer' }, strict: true } },
      metadata: { a: 'b' },
      store: false,
      truncation: 'auto',
      top_logprobs: 1,
      include: ['message.output_text.logprobs'],
      temperature: 1,
    },
    {
      input: [
        { role: 'user', content: 'a' },
        { type: 'custom_tool_call', call_id: 'c', name: 'q', input: 'x' },
        { type: 'custom_tool_call_output', call_id: 'c', output: 'y' },
      ],
      max_output_tokens: 30,
      tools: [
        { type: 'custom', name: 'q', format: { type: 'grammar', syntax: 'regex', definition: '[a-z]{1,3}' } },
      ],
      tool_choice: { type: 'custom', name: 'q' },
    },
  ],
};

const choice = {
  message: { role: 'assistant', content: 'a', tool_calls: [call] },
  finish_reason: 'stop',
  index: 0,
  logprobs: { content: [{ token: 'token_id:5', logprob: -1 }] },
  token_ids: [5],
  prompt_token_ids: [1, 2],
};
const trajectory = {
  messages_and_choices: [...messages, choice],
  reward: 1,
  tools: [tool],
  additional_histories: [{ messages_and_choices: [...messages, choice], tools: [tool] }],
  initial_policy_version: 0,
  final_policy_version: 0,
  metrics: { a: 1 },
  auto_metrics: { b: 2 },
  metadata: { c: 'd' },
  logs: ['l'],
  start_time: '2026-01-31T12:00:00Z',
};
const group = { trajectories: [trajectory, { ...trajectory, reward: 0 }] };
const settings = Object.fromEntries(fieldsOf('ExperimentalConfig').map((field) => [field, null]));

/** Training jobs. */
export const TRAINING: Form = {
  fields: fieldsOf('TrainingJobRequest'),
  bases: [{ model_id: ID, trajectory_groups: [group], experimental_config: settings }],
};

/** Supervised training. */
export const SFT: Form = {
  fields: ['model_id', 'data', 'config'],
  bases: [
    {
      model_id: ID,
      data: [{ messages: [...messages, { role: 'assistant', content: 'a' }], tools: [tool] }],
      config: {
        batch_size: 1,
        epochs: 1,
        learning_rate: 1e-4,
        schedule: 'linear',
        warmup_ratio: 0,
        assistant_turns: 'last',
        packed_sequence_length: 64,
      },
    },
  ],
};

/** Logs. */
export const LOG: Form = {
  fields: fieldsOf('LogRequest'),
  bases: [{ split: 'val', trajectory_groups: [group] }],
};

/** New models. */
export const MODEL: Form = {
  fields: fieldsOf('ModelCreateRequest'),
  bases: [{ base_model: 'onpolicy-tiny', name: 'n', return_existing: true }],
};

/** Pages. */
export const LIST: Form = { fields: fieldsOf('ListQuery'), bases: [{ after: ID, limit: 5, order: 'asc' }] };

/** Deletions. */
export const DELETION: Form = { fields: ['steps'], bases: [{ steps: [1, 2] }] };

/** Arguments of the tokenizer, as one object each. */
export const TOKENIZE: Form = {
  fields: fieldsOf('TokenizeRequest'),
  bases: [{ text: 'a', model: null, addSpecialTokens: true, parseSpecial: true }],
};
export const DETOKENIZE: Form = {
  fields: fieldsOf('DetokenizeRequest'),
  bases: [{ ids: [1, 2], model: null, skipSpecialTokens: true }],
};

export const RERANK: Form = {
  fields: fieldsOf('RerankRequest'),
  bases: [
    {
      query: 'a',
      documents: ['b', { text: 'c' }],
      model: null,
      top_n: 1,
      return_documents: false,
      use_activation: true,
      instruction: null,
      truncate_prompt_tokens: -1,
    },
  ],
};

export const SCORE: Form = {
  fields: fieldsOf('ScoreRequest'),
  bases: [{ text_1: ['a', 'b'], text_2: ['c', 'd'], truncate_prompt_tokens: 5 }],
};

export const CLASSIFY: Form = {
  fields: fieldsOf('ClassifyRequest'),
  bases: [{ input: ['a', 'b'], use_activation: false, timeout_ms: 1000 }],
};

export const EMBEDDING: Form = {
  fields: fieldsOf('EmbeddingRequest'),
  bases: [
    {
      input: ['a', 'b'],
      model: null,
      dimensions: 8,
      encoding_format: 'base64',
      normalize: false,
      add_special_tokens: true,
      truncate_prompt_tokens: 5,
    },
  ],
};
export const ADAPTER_LOAD: Form = {
  fields: fieldsOf('AdapterLoadRequest'),
  bases: [{ name: 'a', path: 'b', base: null, loadInPlace: true }],
};

export const TOKENIZE_BODY: Form = {
  fields: fieldsOf('TokenizeBody'),
  bases: [{ prompt: 'a', model: null, add_special_tokens: true, return_token_strs: true }],
};
export const DETOKENIZE_BODY: Form = {
  fields: fieldsOf('DetokenizeBody'),
  bases: [{ tokens: [1, 2], model: null }],
};
