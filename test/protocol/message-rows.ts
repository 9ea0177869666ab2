/** The fields about tools, prompts and reports, and those about structure. */
import { flag, flagOrNull, jsonObject, type Row, refused, same, text } from './field-row.ts';
import { STRUCTURED_ROWS } from './structured-rows.ts';

const processor = () => {};
/** By field. */
export const MESSAGE_ROWS: Record<string, Row> = {
  ...STRUCTURED_ROWS,
  logits_processors: {
    absent: [],
    good: [
      [null, []],
      [[], []],
      [
        ['mine', processor],
        ['mine', processor],
      ],
      [
        [{ qualname: 'a.b' }, { qualname: 'c', args: [1], kwargs: { k: 2 } }],
        [
          { qualname: 'a.b', args: [], kwargs: {} },
          { qualname: 'c', args: [1], kwargs: { k: 2 } },
        ],
      ],
    ],
    bad: [
      [[5], '.0: expected a non-empty string or an object, got 5'],
      [[''], '.0: expected a non-empty string or an object, got ""'],
      [[{}], '.0.qualname: this field is required, got nothing'],
      [[{ qualname: 'a', arg: 1 }], '.0.arg: not a field of logits_processors.0; did you mean args?'],
      [[{ qualname: 'a', args: {} }], '.0.args: expected a list or null, got an object'],
      [processor, ': expected a list or null, got a function'],
    ],
  },
  inference_xargs: {
    absent: {},
    good: [...same({ a: 'x', b: 1.5, c: ['y', 2], d: [] }), [null, {}]],
    bad: [
      [{ a: null }, '.a: expected a string, a number or a list, got null'],
      [{ a: true }, '.a: expected a string, a number or a list, got true'],
      [{ a: {} }, '.a: expected a string, a number or a list, got an object'],
      [{ a: [[]] }, '.a.0: expected a string or a number, got an empty list'],
    ],
  },
  logprobs: flagOrNull(false),
  top_logprobs: {
    absent: 0,
    beside: { logprobs: true },
    good: [...same(0, 5, -1), [null, 0]],
    bad: [
      [-2, ': expected an integer >= -1 or null, got -2'],
      ['5', ': expected an integer >= -1 or null, got "5"'],
    ],
  },
  logprob_token_ids: {
    absent: null,
    beside: { logprobs: true },
    good: same([], [5, 9], null),
    bad: [
      [['5'], '.0: expected an integer >= 0, got "5"'],
      [
        Array.from({ length: 1025 }, (_, i) => i),
        ': expected a list of at most 1024 or null, got a list of 1025',
      ],
    ],
  },
  prompt_logprobs: {
    absent: null,
    good: same(0, 5, -1, null),
    bad: [[-2, ': expected an integer >= -1 or null, got -2']],
  },
  return_tokens_as_token_ids: flagOrNull(false),
  return_token_ids: flagOrNull(false),
  return_prompt_text: flagOrNull(false),
  return_token_offsets: flagOrNull(false),
  return_assistant_tokens_mask: flagOrNull(false),
  skip_reading_prefix_cache: flagOrNull(false),
  session_id: { ...text(null), bad: [['', ': expected a non-empty string or null, got ""']] },
  stream_interval: {
    absent: 1,
    good: [...same(1, 20), [null, 1]],
    bad: [
      [0, ': expected an integer >= 1 or null, got 0'],
      [1.5, ': expected an integer >= 1 or null, got 1.5'],
    ],
  },
  watermarking: refused('answers have no watermarks'),
  ec_transfer_params: refused('pictures and sounds are read by the process that answers'),
  flat_logprobs: refused('no server returns this form, which vLLM has in its own process'),
  return_timings: flagOrNull(false),
  timings_per_token: flagOrNull(false),
  return_progress: { ...flagOrNull(false), beside: { stream: true } },
  return_routed_experts: flagOrNull(false),
  stream: flagOrNull(false),
  stream_options: {
    absent: { include_usage: false, continuous_usage_stats: false },
    beside: { stream: true },
    good: [
      [null, { include_usage: false, continuous_usage_stats: false }],
      [{}, { include_usage: true, continuous_usage_stats: false }],
      [{ include_usage: null }, { include_usage: false, continuous_usage_stats: false }],
      [{ continuous_usage_stats: true }, { include_usage: true, continuous_usage_stats: true }],
      [
        { include_usage: false, continuous_usage_stats: true },
        { include_usage: false, continuous_usage_stats: false },
      ],
      [
        { include_usage: true, continuous_usage_stats: null },
        { include_usage: true, continuous_usage_stats: false },
      ],
    ],
    bad: [
      [{ include_usage: 1 }, '.include_usage: expected true or false or null, got 1'],
      [{ usage: true }, '.usage: not a field of stream_options'],
    ],
  },
  skip_special_tokens: flag(true),
  spaces_between_special_tokens: flag(true),
  include_reasoning: flag(true),
  echo: flag(false),
  request_id: {
    absent: null,
    good: same('my-id'),
    bad: [
      [null, ': expected a non-empty string, got null'],
      ['', ': expected a non-empty string, got ""'],
    ],
  },
  user: text(null),
  parallel_tool_calls: flagOrNull(true, false),
  reasoning_effort: {
    absent: null,
    good: same('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max', null),
    bad: [
      [
        'extreme',
        ': expected "none", "minimal", "low", "medium", "high", "xhigh", "max" or null, got "extreme"',
      ],
    ],
  },
  reasoning: {
    absent: null,
    good: same({ max_tokens: 0 }, { max_tokens: null }, {}, null),
    bad: [
      [{ max_tokens: -1 }, '.max_tokens: expected an integer >= 0 or null, got -1'],
      [{ effort: 'low' }, '.effort: not a field of reasoning'],
      [5, ': expected an object or null, got 5'],
    ],
  },
  thinking_token_budget: {
    absent: null,
    good: [...same(0, 4096, null), [-1, null]],
    bad: [
      [-2, ': expected an integer >= -1 or null, got -2'],
      [1.5, ': expected an integer >= -1 or null, got 1.5'],
    ],
  },
  reasoning_budget_message: { ...text(''), good: [...same('That is enough.', ''), [null, '']] },
  add_generation_prompt: flag(true),
  continue_final_message: flag(false),
  add_special_tokens: flag(false),
  documents: {
    absent: null,
    good: same([{ title: 'a', text: 'b' }], ['text', 5, null, [{ a: { b: 1 } }]], [], null),
    bad: [
      ['text', ': expected a list or null, got "text"'],
      [[{ a: Number.NaN }], '.0.a: expected a finite number, got NaN'],
    ],
  },
  chat_template: text(null, ['', null]),
  chat_template_kwargs: {
    ...jsonObject({}),
    bad: [...jsonObject({}).bad, [{ tokenize: true }, '.tokenize: expected no such key, got true']],
  },
  truncate_prompt_tokens: {
    absent: null,
    good: same(-1, 0, 1, 100, null),
    bad: [[-2, ': expected an integer >= -1 or null, got -2']],
  },
  truncation_side: {
    absent: null,
    good: same('left', 'right', null),
    bad: [['middle', ': expected "left", "right" or null, got "middle"']],
  },
  context_shift: {
    absent: false,
    good: [
      [true, true],
      [false, false],
      [null, false],
    ],
    bad: [['yes', ': expected true or false or null, got "yes"']],
  },
  n_keep: {
    absent: null,
    good: same(null),
    bad: [
      [-1, ': expected an integer >= 0 or null, got -1'],
      [4, ': expected no value without context_shift: true, got 4'],
    ],
  },
  mm_processor_kwargs: jsonObject(null),
  media_io_kwargs: jsonObject(null),
  priority: {
    absent: 0,
    good: same(0),
    bad: [
      [1, ': expected 0: this runtime does not use priority scheduling, got 1'],
      [null, ': expected an integer, got null'],
      [0.5, ': expected an integer, got 0.5'],
    ],
  },
  speculation: {
    absent: null,
    good: [
      ...same(false, 'auto', null),
      [{ method: 'ngram' }, { method: 'ngram', maxTokens: 15, minMatch: 3, model: null }],
      [
        { method: 'suffix', maxTokens: 4, minMatch: null },
        { method: 'suffix', maxTokens: 4, minMatch: 3, model: null },
      ],
      [
        { method: 'draft', model: 'small' },
        { method: 'draft', maxTokens: 15, minMatch: 3, model: 'small' },
      ],
    ],
    bad: [
      [true, ': expected false, auto, an object with a method, or null, got true'],
      ['ngram', ': expected false, auto, an object with a method, or null, got "ngram"'],
      [{}, '.method: this field is required, got nothing'],
      [{ method: 'guess' }, '.method: expected "ngram", "suffix", "draft" or "mtp", got "guess"'],
      [{ method: 'draft', model: '' }, '.model: expected a non-empty string or null, got ""'],
      [{ method: 'ngram', maxTokens: 33 }, '.maxTokens: expected an integer from 1 to 32 or null, got 33'],
      [{ method: 'ngram', minMatch: 0 }, '.minMatch: expected an integer from 1 to 32 or null, got 0'],
      [{ method: 'ngram', tokens: 3 }, '.tokens: not a field of speculation; did you mean maxTokens?'],
    ],
  },
  prediction: {
    absent: '',
    good: [
      [null, ''],
      [{ type: 'content', content: 'a b' }, 'a b'],
      [
        {
          type: 'content',
          content: [
            { type: 'text', text: 'a' },
            { type: 'text', text: 'b' },
          ],
        },
        'ab',
      ],
    ],
    bad: [
      ['a', ': expected an object or null, got "a"'],
      [{ content: 'a' }, '.type: this field is required, got nothing'],
      [{ type: 'content' }, '.content: this field is required, got nothing'],
      [
        { type: 'content', content: [{ type: 'image', text: '' }] },
        '.content.0.type: expected "text", got "image"',
      ],
    ],
  },
  cache_salt: { ...text(null), bad: [['', ': expected a non-empty string or null, got ""']] },
  timeout_ms: {
    absent: null,
    good: [
      [null, null],
      [1, 1],
      [2 ** 31 - 1, 2 ** 31 - 1],
    ],
    bad: [
      [0, ': expected an integer from 1 to 2147483647 or null, got 0'],
      ['5s', ': expected an integer from 1 to 2147483647 or null, got "5s"'],
    ],
  },
  adapters: {
    absent: [],
    good: [
      [null, []],
      [[], []],
      [[{ file: 'a.gguf' }], [{ model: null, file: 'a.gguf', scale: 1 }]],
      [[{ model: 'm@2', file: null, scale: -0.5 }], [{ model: 'm@2', file: null, scale: -0.5 }]],
    ],
    bad: [
      ['a.gguf', ': expected a list or null, got "a.gguf"'],
      [[{ file: '' }], '.0.file: expected a non-empty string or null, got ""'],
      [[{ file: 'a', scale: 1001 }], '.0.scale: expected a number from -1000 to 1000 or null, got 1001'],
      [[{ path: 'a' }], '.0.path: not a field of adapters.0'],
    ],
  },
  keep_alive: {
    absent: null,
    good: [
      [null, null],
      [0, 0],
      [1.5, 1500],
      [-1, Number.POSITIVE_INFINITY],
      ['-1', Number.POSITIVE_INFINITY],
      ['90ms', 90],
      ['2s', 2000],
      ['1.5m', 90_000],
      ['24h', 86_400_000],
    ],
    bad: [
      [-2, ': expected a number of seconds, -1, a text such as 5m, or null, got -2'],
      ['5 minutes', ': expected a number of seconds, -1, a text such as 5m, or null, got "5 minutes"'],
      [true, ': expected a number of seconds, -1, a text such as 5m, or null, got true'],
    ],
  },
  kv_transfer_params: jsonObject(null),
};
