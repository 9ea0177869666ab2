/** Every rule between fields: requests that it lets through, and requests that it refuses with the message it gives. */
import type { ChatRequestOptions } from '../../src/protocol/index.ts';
import { WEATHER } from './request.ts';

/** Requests that a rule lets through, and that it refuses with this message. */
export type RuleRow = {
  readonly good: readonly Record<string, unknown>[];
  readonly bad: readonly (readonly [Record<string, unknown>, string])[];
  readonly options?: ChatRequestOptions;
};

const FILE = 'messages.0.content.0.file.file_data';
const file = (file_data: string): Record<string, unknown> => ({
  messages: [{ role: 'user', content: [{ type: 'file', file: { file_data } }] }],
});

/** Fields of free-form data, and how each holds some. */
const free = (
  field: string,
  wrap: (value: unknown) => unknown,
  path: string,
  beside = {},
): [string, RuleRow] => [
  `${field} is JSON data`,
  {
    good: [{ [field]: wrap('x'), ...beside }],
    bad: [[{ [field]: wrap(() => 1), ...beside }, `${field}${path}: expected JSON data, got a function`]],
  },
];

/** By the rule's name. */
export const RULE_ROWS: Record<string, RuleRow> = {
  'roles are not misspelt': {
    good: ['user', 'developer', 'human', 'peer', 'model', 'bot', 'ipython', 'root', 'critic', 'context'].map(
      (role) => ({
        messages: [{ role, content: 'a' }],
      }),
    ),
    bad: [
      ['usr', 'user'],
      ['User', 'user'],
      ['sytem', 'system'],
      ['asistent', 'assistant'],
      ['tools', 'tool'],
    ].map(([role, meant]) => [
      { messages: [{ role, content: 'a' }] },
      `messages.0.role: expected "${meant}", or a role that is not almost it, got "${role}"`,
    ]),
  },
  'choices are capped': {
    good: [{ n: 1 }, { n: 5 }, { n: null }],
    bad: [[{ n: 6 }, 'n: expected an integer from 1 to 5, the most this server gives, got 6']],
    options: { maxChoices: 5 },
  },
  'a repetition has sizes and a count': {
    good: [
      { repetition_detection: { max_pattern_size: 4, min_pattern_size: 4, min_count: 2 } },
      { repetition_detection: { min_count: 1 } },
    ],
    bad: [
      [
        { repetition_detection: { max_pattern_size: 4, min_pattern_size: 5, min_count: 2 } },
        'repetition_detection.min_pattern_size: expected at most max_pattern_size, 4, got 5',
      ],
      [
        { repetition_detection: { max_pattern_size: 4, min_count: 1 } },
        'repetition_detection.min_count: expected at least 2 with a max_pattern_size above 0, got 1',
      ],
      [
        { repetition_detection: { max_pattern_size: 4 } },
        'repetition_detection.min_count: expected at least 2 with a max_pattern_size above 0, got 0',
      ],
    ],
  },
  'progress needs stream': {
    good: [{ return_progress: true, stream: true }, { return_progress: false }],
    bad: [[{ return_progress: true }, 'return_progress: expected false without stream: true, got true']],
  },
  'greedy decoding gives one answer': {
    good: [
      { temperature: 0 },
      { temperature: 0, n: 1 },
      { temperature: 0, n: null },
      { temperature: 0.001, n: 2 },
      { temperature: 0, n: 2, use_beam_search: true },
      { temperature: 0, seed: 1, top_p: 0.5, top_k: 5, min_p: 0.1 },
    ],
    bad: [
      [
        { temperature: 0, n: 2 },
        'n: expected 1 with temperature 0, which gives the same answer every time, got 2',
      ],
      [
        { temperature: -0, n: 3 },
        'n: expected 1 with temperature 0, which gives the same answer every time, got 3',
      ],
    ],
  },
  'logit_bias keys are token ids': {
    good: [{ logit_bias: { 0: 1 } }],
    bad: [
      [{ logit_bias: { ' 1': 1 } }, 'logit_bias. 1: expected a token id as key, got " 1"'],
      [{ logit_bias: new Map() }, 'logit_bias: expected an object or null, got a value of type Map'],
    ],
  },
  'bad words are not blank': {
    good: [{ bad_words: [' a'] }],
    bad: [[{ bad_words: ['\t'] }, 'bad_words.0: expected a text that is not blank, got "\\t"']],
  },
  'a draft model is named where one drafts': {
    good: [
      { speculation: { method: 'draft', model: 'small' } },
      { speculation: { method: 'ngram', model: null } },
      { speculation: 'auto' },
      { speculation: null },
    ],
    bad: [
      [
        { speculation: { method: 'draft' } },
        'speculation.model: expected a model with method draft, got nothing',
      ],
      [
        { speculation: { method: 'suffix', model: 'small' } },
        'speculation.model: expected no value with method suffix, got "small"',
      ],
    ],
  },
  'min_tokens fit into the most tokens': {
    good: [
      { min_tokens: 5 },
      { min_tokens: 5, max_tokens: 5 },
      { min_tokens: 5, max_tokens: 1, max_completion_tokens: 5 },
    ],
    bad: [
      [
        { min_tokens: 6, max_tokens: 5 },
        'min_tokens: expected at most the 5 tokens that may be generated, got 6',
      ],
      [
        { min_tokens: 6, max_tokens: 9, max_completion_tokens: 5 },
        'min_tokens: expected at most the 5 tokens that may be generated, got 6',
      ],
    ],
  },
  'top_logprobs need logprobs': {
    good: [{ top_logprobs: 0 }, { top_logprobs: null }, { logprobs: true, top_logprobs: 3 }],
    bad: [
      [{ top_logprobs: 3 }, 'top_logprobs: expected 0 without logprobs: true, got 3'],
      [{ top_logprobs: -1, logprobs: false }, 'top_logprobs: expected 0 without logprobs: true, got -1'],
    ],
  },
  'logprob_token_ids need logprobs': {
    good: [
      { logprob_token_ids: [] },
      { logprob_token_ids: null },
      { logprobs: true, logprob_token_ids: [3] },
    ],
    bad: [
      [
        { logprob_token_ids: [3] },
        'logprob_token_ids: expected no value without logprobs: true, got a list of 1',
      ],
    ],
  },
  'top_logprobs are capped': {
    options: { maxLogprobs: 20 },
    good: [
      { logprobs: true, top_logprobs: 20 },
      { logprobs: true, top_logprobs: 0 },
    ],
    bad: [
      [
        { logprobs: true, top_logprobs: 21 },
        'top_logprobs: expected an integer from 0 to 20, the most this runtime reports, got 21',
      ],
      [
        { logprobs: true, top_logprobs: -1 },
        'top_logprobs: expected an integer from 0 to 20, the most this runtime reports, got -1',
      ],
    ],
  },
  'prompt_logprobs are capped': {
    options: { maxLogprobs: 20 },
    good: [{ prompt_logprobs: 20 }, { prompt_logprobs: null }],
    bad: [
      [
        { prompt_logprobs: 21 },
        'prompt_logprobs: expected an integer from 0 to 20, the most this runtime reports, got 21',
      ],
      [
        { prompt_logprobs: -1 },
        'prompt_logprobs: expected an integer from 0 to 20, the most this runtime reports, got -1',
      ],
    ],
  },
  'prompt_logprobs do not stream': {
    good: [
      { prompt_logprobs: 0, stream: true },
      { prompt_logprobs: 2, stream: false },
      { prompt_logprobs: -1 },
    ],
    bad: [
      [
        { prompt_logprobs: 1, stream: true },
        'prompt_logprobs: expected no value or 0 with stream: true, got 1',
      ],
      [
        { prompt_logprobs: -1, stream: true },
        'prompt_logprobs: expected no value or 0 with stream: true, got -1',
      ],
    ],
  },
  'one budget of reasoning': {
    good: [
      { reasoning: { max_tokens: 5 }, thinking_token_budget: 5 },
      { reasoning: {}, thinking_token_budget: 5 },
    ],
    bad: [
      [
        { reasoning: { max_tokens: 5 }, thinking_token_budget: 6 },
        'thinking_token_budget: expected no value or 5, as in reasoning.max_tokens, got 6',
      ],
    ],
  },
  'stream_options need stream': {
    good: [
      { stream_options: {} },
      { stream_options: null },
      { stream_options: { include_usage: undefined } },
      { stream_options: { include_usage: true }, stream: true },
    ],
    bad: [
      [
        { stream_options: { include_usage: true } },
        'stream_options: expected no value without stream: true, got an object',
      ],
      [
        { stream_options: { include_usage: null }, stream: false },
        'stream_options: expected no value without stream: true, got an object',
      ],
    ],
  },
  'a continued message needs no new one': {
    good: [{ continue_final_message: true }, { continue_final_message: true, add_generation_prompt: false }],
    bad: [
      [
        { continue_final_message: true, add_generation_prompt: true },
        'add_generation_prompt: expected false with continue_final_message: true, got true',
      ],
    ],
  },
  'a request may bring a template': {
    options: { allowRequestTemplate: false },
    good: [{ chat_template: null }],
    bad: [
      [
        { chat_template: 'x' },
        'chat_template: expected no template: this runtime does not take templates from requests, got "x"',
      ],
    ],
  },
  'a request may bring a template among its variables': {
    options: { allowRequestTemplate: false },
    good: [{ chat_template_kwargs: { x: 1 } }],
    bad: [
      [
        { chat_template_kwargs: { chat_template: 'x' } },
        'chat_template_kwargs.chat_template: expected no template: this runtime does not take templates from requests, got "x"',
      ],
    ],
  },
  'template variables leave the renderer alone': {
    good: [
      { chat_template_kwargs: { chat_template: '{{ messages }}' } },
      { chat_template_kwargs: { chat_template: null } },
    ],
    bad: [
      [
        { chat_template_kwargs: { tokenize: false } },
        'chat_template_kwargs.tokenize: expected no such key, got false',
      ],
      [
        { chat_template_kwargs: { chat_template: 5 } },
        'chat_template_kwargs.chat_template: expected a string, got 5',
      ],
    ],
  },
  'message parts are JSON data, and files of text are text': {
    good: [
      { messages: [{ role: 'user', content: [{ type: 'image_embeds', image_embeds: 'AA==' }] }] },
      ...['data:text/plain,a%20b', 'aGk=', 'data:image/png;base64,AAAA', 'http://a/b'].map(file),
    ],
    bad: [
      [
        { messages: [{ role: 'user', content: [{ type: 'image_pil', image: new Map() }] }] },
        'messages.0.content.0.image: expected JSON data, got a value of type Map',
      ],
      [
        { messages: [{ role: 'developer', tools: [{ ...WEATHER, extra: 5n }] }] },
        'messages.0.tools.0.extra: expected JSON data, got 5n',
      ],

      [
        file('data:text/plain;base64,/w=='),
        `${FILE}: expected text in UTF-8, got "data:text/plain;base64,/w=="`,
      ],
      [
        file('data:text/plain;base64,???'),
        `${FILE}: expected base64, or text with percent-encoded bytes, got "data:text/plain;base64,???"`,
      ],
      [
        file('data:text/plain;charset=klingon,a'),
        `${FILE}: expected text in klingon, got "data:text/plain;charset=klingon,a"`,
      ],
      [file('/w=='), `${FILE}: expected text in UTF-8, or a data: URI, got "/w=="`],
    ],
  },
  'priority needs the priority policy': {
    good: [{ priority: 0 }],
    bad: [[{ priority: -3 }, 'priority: expected 0: this runtime does not use priority scheduling, got -3']],
  },
  'an adapter has a model or a file': {
    good: [{ adapters: [{ file: 'a' }, { model: 'b', file: null }] }, { adapters: null }],
    bad: [
      [{ adapters: [{ file: 'a' }, {}] }, 'adapters.1: expected either model or file, got an object'],
      [{ adapters: [{ file: 'a', model: 'b' }] }, 'adapters.0: expected either model or file, got an object'],
    ],
  },
  'adapters are few': {
    good: [{ adapters: Array(16).fill({ file: 'a' }) }],
    bad: [
      [
        { adapters: Array(17).fill({ file: 'a' }) },
        'adapters: expected at most 16 of them, got a list of 17',
      ],
    ],
  },
  ...Object.fromEntries([
    free('tools', (value) => [{ ...WEATHER, extra: value }], '.0.extra'),
    free('functions', (value) => [{ ...WEATHER.function, extra: value }], '.0.extra'),
    free(
      'response_format',
      (value) => ({ type: 'json_schema', json_schema: { name: 'x', schema: { value } } }),
      '.json_schema.schema.value',
    ),
    free('structured_outputs', (value) => ({ json: { value } }), '.json.value'),
    free('chat_template_kwargs', (value) => ({ value }), '.value'),
    free('media_io_kwargs', (value) => ({ value: [value] }), '.value.0'),
    free('mm_processor_kwargs', (value) => ({ value: [value] }), '.value.0'),
    free('kv_transfer_params', (value) => ({ value }), '.value'),
    free('stream_options', (value) => ({ include_obfuscation: value }), '.include_obfuscation', {
      stream: true,
    }),
  ]),
  'inference_xargs is JSON data': {
    good: [{ inference_xargs: { a: [] } }],
    bad: [[{ inference_xargs: new Set() }, 'inference_xargs: expected JSON data, got a value of type Set']],
  },
  'documents is JSON data': {
    good: [{ documents: [{ text: 'a' }] }],
    bad: [[{ documents: [new Map()] }, 'documents.0: expected JSON data, got a value of type Map']],
  },
};
