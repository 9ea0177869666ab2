/** Reasoning and content by family, however the text is cut; the chain with the tool-call parser. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createReasoningParser,
  REASONING_FORMATS,
  type ReasoningEvent,
  type ReasoningFormat,
  reasoningMarkers,
} from '../../../src/template/reasoning/index.ts';
import { createToolCallParser, type ToolFormat } from '../../../src/template/tool-calls/index.ts';
import { foldToolCallEvents } from '../tool-calls/fold.ts';
import { cut } from '../tool-calls/harness.ts';

type Split = { readonly reasoning: string; readonly content: string };

function fold(events: readonly ReasoningEvent[]): Split {
  const all = (kind: ReasoningEvent['kind']): string =>
    events
      .filter((event) => event.kind === kind)
      .map((event) => event.text)
      .join('');
  return { reasoning: all('reasoning'), content: all('content') };
}

function split(format: ReasoningFormat, deltas: readonly string[], startsInside = false): Split {
  const parser = createReasoningParser(format, { startsInside });
  return fold([...deltas.flatMap((delta) => parser.push(delta)), ...parser.finish()]);
}

const F = REASONING_FORMATS;
const DECLARED: ReasoningFormat = {
  kind: 'tags',
  name: 'reasoning',
  begin: '<reasoning>',
  end: '</reasoning>',
};

/** format, text, starts inside, reasoning, content */
const ROWS: [ReasoningFormat, string, boolean, string, string][] = [
  [F.think, '<think>\nWhy?\n</think>\n\nSo.', false, '\nWhy?\n', '\n\nSo.'],
  [F.think, '\n<think>Why?</think>So.', false, 'Why?', 'So.'],
  [F.think, 'Why?\n</think>\n\nSo.', true, 'Why?\n', '\n\nSo.'],
  [F.think, '<think>\nWhy?</think>So.', true, '\nWhy?', 'So.'], // the model repeats the marker
  [F.think, '<think>Why? a </thin b', false, 'Why? a </thin b', ''], // no closing tag: all is reasoning
  [F.think, 'Why?', true, 'Why?', ''],
  [F.think, '  Why?', true, '  Why?', ''],
  [F.think, 'So <think>is a tag</think>.', false, '', 'So <think>is a tag</think>.'],
  [F.think, '<think>a</think>b<think>c</think>', false, 'a', 'b<think>c</think>'],
  [F.think, '<thin', false, '', ''], // a mark in which the text ends is no content
  [F.think, 'a <', false, '', 'a <'],
  [F.think, 'Why? </th', true, 'Why? ', ''],
  [F.think, '</think>So.', false, '', 'So.'],
  [F.think, '\n</think>\n\nSo.', false, '', '\n\n\nSo.'],
  [F.think, 'Why?</think>\n</think>\n\nSo.', true, 'Why?', '\n\n\nSo.'],
  [F.think, 'So.\n</think>', false, '', 'So.\n'],
  [F.think, 'A </think> ends it.', false, '', 'A </think> ends it.'],
  [F.mistral, '[/THINK]So.[/THINK] Yes.', false, '', 'So. Yes.'],
  [F.think, '<think></think>So.', false, '', 'So.'],
  [F.think, '', true, '', ''],
  [DECLARED, '<reasoning>Why?</reasoning>So.', false, 'Why?', 'So.'],
  [F.mistral, '[THINK]Why?[/THINK]So.[THINK]Hm.[/THINK]Yes.', false, 'Why?Hm.', 'So.Yes.'],
  [F.seed_oss, '<seed:think>Why?</seed:think>So.', false, 'Why?', 'So.'],
  [F.gemma4, '<|channel>thought\nWhy?\n<channel|>So.', false, 'Why?\n', 'So.'],
  [F.gemma4, '<|channel>thought<channel|>So.', false, '', 'So.'],
  [
    F.gemma4,
    '<|channel><|channel>thought\n<channel|>So.<|channel>thought\n<channel|><channel|>',
    false,
    '',
    'So.',
  ],
  [F.gemma4, '<|channel>thousand reasons<channel|>So.', false, 'thousand reasons', 'So.'],
  [F.gemma4, '<|channel>This\nThat<channel|>So.', false, 'This\nThat', 'So.'],
  [F.gemma4, '<|channel>analysis\nWhy?<channel|>So.', false, 'Why?', 'So.'],
  [F.gemma4, 'So.<|channel>thou', false, '', 'So.'],
  [F.gemma4, 'So.<|chan', false, '', 'So.'],
  [F.kimi_k3, 'Why?<|open|>response<|sep|>So.<|close|>respon', true, 'Why?', 'So.'],
  [F.solar_open2, 'Why?<|think:end|>So.', true, 'Why?', 'So.'],
  [F.think_answer, '<think>\nWhy?\n</think>\n<answer>\nSo.\n</answer>', false, '\nWhy?\n', '\n\nSo.\n'],
  [
    F.inkling,
    '<|content_thinking|>Why?<|end_message|><|message_model|><|content_text|>So.<|end_message|><|content_model_end_sampling|>',
    false,
    'Why?',
    'So.',
  ],
  [F.inkling, 'So. Plain.', false, '', 'So. Plain.'],
  [
    F.inkling,
    'get_weather<|content_invoke_tool_json|>{"name":"get_weather","args":{}}<|end_message|>',
    false,
    '',
    '<|content_invoke_tool_json|>{"name":"get_weather","args":{}}<|end_message|>',
  ],
  [F.muse_glimmer, ' to=user<|message|>So.<|eot|>', false, '', 'So.'],
  [F.muse_glimmer, ' to=self<|message|>Why?<|eom|><|start|>assistant to=us', false, 'Why?', ''],
  [
    F.cohere,
    '<|START_THINKING|>Why?<|END_THINKING|><|START_RESPONSE|>So.<|END_RESPONSE|>',
    false,
    'Why?',
    'So.',
  ],
  [
    F.kimi_k3,
    'Why?<|close|>think<|sep|><|open|>response<|sep|>So.<|close|>response<|sep|><|close|>message<|sep|>',
    true,
    'Why?',
    'So.',
  ],
  [
    F.muse_glimmer,
    ' to=self<|message|>Why?<|eom|><|start|>assistant to=user<|message|>So.',
    false,
    'Why?',
    'So.',
  ],
  [F.granite, 'Here is my thought process: Why? Here is my response: So.', false, ' Why? ', ' So.'],
  [F.think_response, '<think>Why?</think><response>So.</response>', false, 'Why?', 'So.'],
  [F.apriel, 'Why?\n[BEGIN FINAL RESPONSE]\nSo.', true, 'Why?\n', '\nSo.'],
  [F.apertus, '<|inner_prefix|>Why?<|inner_suffix|>So.', false, 'Why?', 'So.'],
  [F.kimi_vl, '◁think▷Why?◁/think▷So.', false, 'Why?', 'So.'],
  [
    F.harmony,
    '<|channel|>analysis<|message|>Why?<|end|><|start|>assistant<|channel|>final<|message|>So.<|return|>',
    false,
    'Why?',
    'So.',
  ],
  [
    F.harmony,
    '<|channel|>analysis<|message|>Why?<|end|><|start|>assistant<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>Wait.<|end|><|start|>assistant<|channel|>final<|message|>So.',
    false,
    'Why?\nHm.',
    'Wait.\nSo.',
  ],
  [F.harmony, 'Why?<|end|><|start|>assistant<|channel|>final<|message|>So.', true, 'Why?', 'So.'],
  [F.harmony, '<|channel|>analysis<|message|>Why?', false, 'Why?', ''],
  [F.harmony, 'So.', false, '', 'So.'],
  [F.harmony, '<|channel|>fin', false, '', ''],
  [F.harmony, '<|channel|>analysis<|message|>Why?<|end|><|start|>assistant<|channel|>fin', false, 'Why?', ''],
  [F.harmony, '<|channel|>analysis<|message|>Why?<|end|><|start|>assis', false, 'Why?', ''],
  [F.harmony, ' to=func', false, '', ''],
  [
    F.harmony,
    '<|channel|>commentary to=assistant<|channel|>analysis<|message|>Why?<|end|><|start|>assistant<|channel|>commentary to=assistant<|channel|>final<|message|>So.',
    false,
    'Why?',
    'So.',
  ],
  [
    F.harmony,
    '<|channel|>analysis<|message|>Why?<|end|><|start|>assistant<|channel|>commentary to=python <|constrain|>code<|message|>print(1)<|call|>',
    false,
    'Why?',
    '',
  ],
  [
    F.harmony,
    '<|start|>assistant to=browser.search<|channel|>commentary<|message|>{}<|call|>',
    false,
    '',
    '',
  ],
  [
    F.harmony,
    '<|channel|>analysis<|message|>Why?<|end|><|start|>assistant<|channel|>commentary to=functions.f<|message|>{}<|call|>',
    false,
    'Why?',
    '<|start|>assistant<|channel|>commentary to=functions.f<|message|>{}<|call|>',
  ],
];

describe.each(ROWS)('%j on %j', (format, text, startsInside, reasoning, content) => {
  it('splits', () => {
    expect(split(format, [text], startsInside)).toEqual({ reasoning, content });
  });

  it('splits the same however the text is cut', () => {
    expect(split(format, text.split(''), startsInside)).toEqual({ reasoning, content });
    fc.assert(
      fc.property(fc.array(fc.nat(text.length), { maxLength: 8 }), (places) => {
        expect(split(format, cut(text, places), startsInside)).toEqual({ reasoning, content });
      }),
      { numRuns: 50 },
    );
  });
});

it('has a row for every known format', () => {
  const covered = new Set(ROWS.map(([format]) => format.name));
  expect(Object.keys(F).filter((name) => !covered.has(name))).toEqual([]);
});

describe('while text comes', () => {
  it('holds back only what may still become a marker', () => {
    const parser = createReasoningParser(F.think, { startsInside: true });
    expect(parser.push('a < b </th')).toEqual([{ kind: 'reasoning', text: 'a < b ' }]);
    expect(parser.push('e')).toEqual([{ kind: 'reasoning', text: '</the' }]);
  });

  it('knows where it is', () => {
    const parser = createReasoningParser(F.think, { startsInside: false });
    const seen = ['', '<think>', 'Why?', '</thi', 'nk>', '\n', 'So.'].map((delta) => {
      parser.push(delta);
      return [parser.phase(), parser.isInside()];
    });
    expect(seen).toEqual([
      ['start', false],
      ['reasoning', true],
      ['reasoning', true],
      ['reasoning', true],
      ['content', false],
      ['content', false],
      ['content', false],
    ]);
    expect(createReasoningParser(F.think, { startsInside: true }).isInside()).toBe(true);
  });

  it('is inside of harmony until the final message begins', () => {
    const parser = createReasoningParser(F.harmony, { startsInside: false });
    const inside = [
      '',
      '<|channel|>analysis<|message|>',
      'Why?',
      '<|end|>',
      '<|start|>assistant<|channel|>final<|message|>',
      '{',
    ].map((delta) => {
      parser.push(delta);
      return parser.isInside();
    });
    expect(inside).toEqual([true, true, true, true, false, false]);
  });
});

it('names the markers that must stay in the text', () => {
  expect(reasoningMarkers(F.cohere)).toContain('<|END_RESPONSE|>');
  expect(reasoningMarkers(F.harmony)).toContain('<|channel|>');
});

describe('reasoning, then tool calls', () => {
  const chain = (reasoning: ReasoningFormat, tools: ToolFormat, deltas: readonly string[]) => {
    const first = createReasoningParser(reasoning, { startsInside: false });
    const second = createToolCallParser(tools, { tools: [], createId: () => 'x' });
    const events = [...deltas.flatMap((delta) => first.push(delta)), ...first.finish()];
    const calls = events.flatMap((event) => (event.kind === 'content' ? second.push(event.text) : []));
    return { reasoning: fold(events).reasoning, ...foldToolCallEvents([...calls, ...second.finish()]) };
  };

  it.each<[ReasoningFormat, ToolFormat, string, string]>([
    [
      F.think,
      'hermes',
      '<think>Use <tool_call>?</think>\n\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>',
      'Use <tool_call>?',
    ],
    [
      F.harmony,
      'harmony',
      '<|channel|>analysis<|message|>Use f?<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": 1}<|call|>',
      'Use f?',
    ],
    [F.harmony, 'harmony', ' to=functions.f<|channel|>commentary json<|message|>{"a": 1}<|call|>', ''],
    [
      F.cohere,
      'cohere',
      '<|START_THINKING|>Use f?<|END_THINKING|><|START_ACTION|>[{"tool_call_id": "0", "tool_name": "f", "parameters": {"a": 1}}]<|END_ACTION|>',
      'Use f?',
    ],
  ])('in %j', (reasoning, tools, text, thought) => {
    const expected = {
      reasoning: thought,
      content: '',
      toolCalls: [{ id: 'x', name: 'f', arguments: '{"a": 1}' }],
      hasBrokenCall: false,
    };
    expect(chain(reasoning, tools, [text])).toEqual(expected);
    expect(chain(reasoning, tools, text.split(''))).toEqual(expected);
  });

  it('gives harmony text without framing', () => {
    const text =
      '<|channel|>analysis<|message|>Why?<|end|><|start|>assistant<|channel|>final<|message|>So.<|return|>';
    expect(chain(F.harmony, 'harmony', [text])).toMatchObject({
      reasoning: 'Why?',
      content: 'So.',
      toolCalls: [],
    });
  });
});
