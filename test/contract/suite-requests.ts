/** The requests of the suites that JSON can hold: rows of fields and rules, random ones, calls in every format, reasoning. */
import type { ChatCompletionRequest, Tool } from '../../src/protocol/index.ts';
import { randomRequest } from '../answer/fields/random-request.ts';
import { COMPLETION } from '../extremes/forms.ts';
import { randomNumbers } from '../fakes/random-numbers.ts';
import { BEAM_RULE_ROWS } from '../protocol/beam-rule-rows.ts';
import { MESSAGE_ROWS } from '../protocol/message-rows.ts';
import { WEATHER } from '../protocol/request.ts';
import { RULE_ROWS } from '../protocol/rule-rows.ts';
import { SAMPLING_ROWS } from '../protocol/sampling-rows.ts';
import { STRUCTURED_RULE_ROWS } from '../protocol/structured-rule-rows.ts';
import { TOOL_ROWS } from '../protocol/tool-rows.ts';
import { TOOL_RULE_ROWS } from '../protocol/tool-rule-rows.ts';
import { FAMILY_ROWS } from '../template/tool-calls/families.ts';
import { TOOLS } from '../template/tool-calls/harness.ts';

/** A request, and where it is from. */
export type SuiteRequest = readonly [name: string, request: ChatCompletionRequest];

/** The template that is only the content of its messages. */
export const PLAIN = '{% for m in messages %}{{ m.content }}{% endfor %}';

const MOST_CHOICES = 8;
const MOST_TOKENS = 24;
const RANDOM = 60;
/** Beyond one request, a matter of what a server allows, or of which comes first on the clock: other tests are made for these. */
const LEFT_OUT = ['kv_transfer_params', 'request_id', 'logits_processors', 'adapters', 'timeout_ms'];

const messages = [{ role: 'user' as const, content: 'Tell me a story.' }];
const tools = TOOLS.map((tool) => ({ type: 'function', ...tool }) as Tool);

/** Short, of few choices, and with a seed. Null: it is none that can be repeated over HTTP. */
function tame(fields: Record<string, unknown>): ChatCompletionRequest | null {
  const isJson = Object.values(fields).every((value) => !holdsMore(value));
  if (!isJson || LEFT_OUT.some((field) => fields[field] != null)) return null;
  const { n, seed, max_tokens, max_completion_tokens, stream: _, stream_options: __, ...rest } = fields;
  const most = Math.min(Number(max_completion_tokens ?? max_tokens ?? MOST_TOKENS), MOST_TOKENS);
  return {
    messages,
    ...rest,
    ...(n == null ? {} : { n: Math.min(Number(n), MOST_CHOICES) }),
    seed: seed == null || seed === -1 ? (rest['use_beam_search'] ? null : 7) : seed,
    max_tokens: Math.max(most, Number(rest['min_tokens'] ?? 0)),
  } as ChatCompletionRequest;
}

/** Returns true if a value is or contains a value that JSON cannot represent, for example a bigint. */
function holdsMore(value: unknown): boolean {
  if (typeof value === 'function' || typeof value === 'bigint' || typeof value === 'symbol') return true;
  if (typeof value !== 'object' || value === null) return false;
  return value instanceof Uint8Array || Object.values(value).some(holdsMore);
}

function fieldRows(): SuiteRequest[] {
  return Object.entries({ ...SAMPLING_ROWS, ...MESSAGE_ROWS, ...TOOL_ROWS })
    .filter(([field]) => field !== 'model')
    .flatMap(([field, { good, beside = {} }]) =>
      good.flatMap(([value], i): SuiteRequest[] => {
        const request = tame({ ...beside, [field]: value });
        return request ? [[`${field} ${i}`, request]] : [];
      }),
    );
}

function ruleRows(): SuiteRequest[] {
  return Object.entries({
    ...RULE_ROWS,
    ...BEAM_RULE_ROWS,
    ...STRUCTURED_RULE_ROWS,
    ...TOOL_RULE_ROWS,
  }).flatMap(([name, { good, options }]) =>
    options
      ? []
      : good.flatMap((fields, i): SuiteRequest[] => {
          const request = tame(fields);
          return request ? [[`${name} ${i}`, request]] : [];
        }),
  );
}

function randomRows(): SuiteRequest[] {
  const next = randomNumbers(5);
  return Array.from({ length: RANDOM }, (_, i): SuiteRequest[] => {
    const { logits_processors: _left, ...fields } = randomRequest(next);
    const request = tame(fields);
    return request ? [[`random ${i}`, request]] : [];
  }).flat();
}

/** Makes the model say a text. */
const saying = (text: string, more: object = {}): ChatCompletionRequest => ({
  messages,
  temperature: 0,
  max_tokens: 2000,
  structured_outputs: { choice: [text] },
  ...more,
});

/** Answers in the format of a model whose alias is that of the format: whole, two calls, broken, cut, and forced. */
function callRows(): SuiteRequest[] {
  const custom: Tool = {
    type: 'custom',
    custom: {
      name: 'sql',
      format: { type: 'grammar', grammar: { syntax: 'regex', definition: 'SELECT [a-c"\\n]{3}' } },
    },
  };
  const drawn = { messages, temperature: 1, seed: 3, max_tokens: 400 };
  return FAMILY_ROWS.flatMap(({ format: model, one, two, malformed }): SuiteRequest[] => [
    [`${model}: a call`, saying(one, { model, tools })],
    [`${model}: text and two calls`, saying(`Well.\n${two}`, { model, tools, logprobs: true })],
    [`${model}: the first of two`, saying(two, { model, tools, parallel_tool_calls: false })],
    [
      `${model}: as functions`,
      saying(two, { model, functions: tools.map((tool) => (tool as { function: object }).function) }),
    ],
    [`${model}: no calls wanted`, saying(one, { model, tools, tool_choice: 'none' })],
    [`${model}: broken`, saying(malformed, { model, tools })],
    [`${model}: cut`, saying(two, { model, tools, max_tokens: 60 })],
    [`${model}: a stop inside`, saying(two, { model, tools, stop: ['days'] })],
    [
      `${model}: one of them forced`,
      { ...drawn, model, tools: [WEATHER, custom] as Tool[], tool_choice: 'required' },
    ],
    [
      `${model}: a custom one forced`,
      { ...drawn, model, tools: [custom], tool_choice: { type: 'custom', custom: { name: 'sql' } }, n: 2 },
    ],
    [
      `${model}: allowed ones`,
      saying(two, {
        model,
        tools,
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'get_time' } }] },
        },
      }),
    ],
  ]);
}

function reasoningRows(): SuiteRequest[] {
  const thinks = { chat_template: `${PLAIN}{% if false %}<think></think>{% endif %}` };
  const opened = { chat_template: `${PLAIN}<think>\n` };
  const thought = '<think>two and two</think>four';
  return [
    ['reasoning', saying(thought, thinks)],
    ['reasoning with log-probabilities', saying(thought, { ...thinks, logprobs: true, top_logprobs: 2 })],
    ['reasoning that is left out', saying(thought, { ...thinks, include_reasoning: false })],
    ['reasoning that is cut', saying(thought, { ...thinks, max_tokens: 8 })],
    ['opened reasoning', { messages, temperature: 0, max_tokens: 20, ...opened }],
    ['closed reasoning', { messages, temperature: 0, max_tokens: 20, reasoning_effort: 'none', ...opened }],
    [
      'an answer after opened reasoning',
      { messages, temperature: 0, max_tokens: 40, structured_outputs: { regex: '[ab]{4}' }, ...opened },
    ],
  ];
}

/** All of them. */
export function suiteRequests(): SuiteRequest[] {
  const forms = COMPLETION.bases.flatMap((base, i): SuiteRequest[] => {
    const request = tame(base as Record<string, unknown>);
    return request ? [[`form ${i}`, request]] : [];
  });
  return [...fieldRows(), ...ruleRows(), ...forms, ...randomRows(), ...callRows(), ...reasoningRows()];
}
