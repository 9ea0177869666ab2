/** Calls of `onpolicy/template` -> text, spans and errors. */
import { createRequire } from 'node:module';
import { describe, expect, it, vi } from 'vitest';
import { OnpolicyError } from '../../src/errors.ts';
import { compileChatTemplate, renderChatTemplate } from '../../src/template/index.ts';
import { render } from './helpers.ts';

const CHAT = [
  { role: 'user', content: 'Hi' },
  { role: 'assistant', content: 'Yo ' },
];
const CHATML =
  "{% for m in messages %}{{ '<' + m.role + '>' }}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}</s>{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}";

function failure(template: string, kwargs: Record<string, unknown> = {}): OnpolicyError {
  try {
    render(template, kwargs);
  } catch (error) {
    if (error instanceof OnpolicyError) return error;
    throw error;
  }
  throw new Error('the template did not fail');
}

describe('errors', () => {
  it('show line, column, the line and a caret', () => {
    expect(failure("line one\n{{ 'a' + none }}").message).toBe(
      'can only concatenate str (not "NoneType") to str\n' +
        '  at line 2, column 8\n' +
        "2 | {{ 'a' + none }}\n" +
        '           ^',
    );
  });

  it('point into macros, not at their calls', () => {
    const error = failure('{% macro m(x) %}\n{{ x.y.z }}\n{% endmacro %}\n{{ m({}) }}');
    expect(error.detail?.[0]?.ctx).toEqual({ line: 2, column: 8 });
  });

  it('point at syntax', () => {
    const error = failure('{% if x %}\n{{ 1 + }}\n{% endif %}');
    expect(error.message).toContain("unexpected 'end of print statement'");
    expect(error.detail?.[0]?.ctx).toEqual({ line: 2, column: 8 });
  });

  it('leave the message of raise_exception alone', () => {
    const error = failure("{{ raise_exception('Roles must alternate!') }}");
    expect(error.message).toBe('Roles must alternate!');
    expect(error.code).toBe('TEMPLATE_FAILED');
    expect(error.detail?.[0]?.type).toBe('Raised');
  });
});

describe('renderWithMask', () => {
  const template = compileChatTemplate(CHATML);

  it('gives the parts that the assistant wrote', () => {
    const { text, assistantSpans } = template.renderWithMask({ messages: [...CHAT, ...CHAT] });
    expect(text).toBe('<user>Hi<assistant>Yo </s><user>Hi<assistant>Yo </s>');
    expect(assistantSpans.map(([start, end]) => text.slice(start, end))).toEqual(['Yo </s>', 'Yo </s>']);
  });

  it('works inside macros and set blocks', () => {
    const nested = compileChatTemplate(
      '{% macro say(x) %}A{% generation %}{{ x }}{% endgeneration %}B{% endmacro %}{% set t %}{{ say("one") }}{% endset %}[{{ t }}{{ say("two") }}]',
    );
    const { text, assistantSpans } = nested.renderWithMask({ messages: [] });
    expect(text).toBe('[AoneBAtwoB]');
    expect(assistantSpans.map(([start, end]) => text.slice(start, end))).toEqual(['one', 'two']);
  });

  it('refuses templates that measure the marked text', () => {
    const measured = compileChatTemplate(
      '{% set t %}{% generation %}abc{% endgeneration %}{% endset %}{{ t|length }}',
    );
    expect(() => measured.renderWithMask({ messages: [] })).toThrow(
      expect.objectContaining({ code: 'UNSUPPORTED' }),
    );
  });

  it('refuses templates without generation blocks', () => {
    expect(() => compileChatTemplate('x').renderWithMask({ messages: [] })).toThrow(/generation/);
  });
});

describe('continueFinalMessage', () => {
  const run = (template: string, messages: readonly unknown[]): string =>
    renderChatTemplate({ template, messages, continueFinalMessage: true });
  const template = '{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}';

  it('ends inside the last message and keeps its blank', () => {
    expect(run(template, CHAT)).toBe('<user>Hi</s><assistant>Yo ');
  });
  it('drops the blank where the template trims', () => {
    expect(run(template.replace('m.content', 'm.content|trim'), CHAT)).toBe('<user>Hi</s><assistant>Yo');
  });
  it('continues the last text part', () => {
    const parts = [{ role: 'assistant', content: [{ type: 'text', text: 'a' }, { type: 'image' }] }];
    expect(run('{% for p in messages[0].content %}[{{ p.text }}]{% endfor %}', parts)).toBe('[a');
  });
  it('fails when the message is not in the text', () => {
    expect(() => run('{{ messages[0].content }}', CHAT)).toThrow(/does not appear/);
    expect(() => run('x', [])).toThrow(/no final message/);
  });
});

describe('what a template tells about itself', () => {
  it('lists the names it takes from outside', () => {
    const template = compileChatTemplate(
      '{% set a = 1 %}{% macro m(p) %}{{ p }}{{ b }}{% endmacro %}{% for x in messages %}{{ x }}{{ loop.index }}{% endfor %}{{ enable_thinking is defined }}{{ range(2) }}{{ a }}',
    );
    expect([...template.variables].sort()).toEqual(['b', 'enable_thinking', 'messages']);
  });

  it.each([
    ['{% for m in messages %}{{ m.content }}{% endfor %}', 'string'],
    ['{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}', 'openai'],
    ["{% set c = messages[0]['content'] %}{% for p in c|list %}{% endfor %}", 'openai'],
    [
      '{% set ms = messages[1:] %}{% for m in ms %}{% for p in m.content %}{% endfor %}{% endfor %}',
      'openai',
    ],
    [
      '{% macro r(c) %}{% for p in c %}{% endfor %}{% endmacro %}{% for m in messages %}{{ r(m.content) }}{% endfor %}',
      'openai',
    ],
    ['{% for m in messages %}{% for c in m.tool_calls %}{% endfor %}{% endfor %}', 'string'],
  ])('%s wants %s contents', (source, format) => {
    expect(compileChatTemplate(source).contentFormat).toBe(format);
  });
});

describe('input', () => {
  it('gives None for what is absent and leaves absent tokens undefined', () => {
    expect(render('{{ tools is none }}{{ documents is none }}{{ bos_token is defined }}')).toBe(
      'TrueTrueFalse',
    );
  });
  it('lets kwargs win', () => {
    expect(render('{{ add_generation_prompt }}', { add_generation_prompt: 'x' })).toBe('x');
  });
  it('keeps the order of Map keys and counts integral numbers as int', () => {
    expect(
      render('{{ m }}{{ n }}', {
        m: new Map([
          ['b', 1],
          ['1', 2],
        ]),
        n: 1.0,
      }),
    ).toBe("{'b': 1, '1': 2}1");
  });
  it('takes keys that mean something in JavaScript as plain keys', () => {
    const message: unknown = JSON.parse('{"__proto__": 1, "constructor": 2, "__keywords": true}');
    expect(render('{{ m }}{{ m.constructor }}', { m: message })).toBe(
      "{'__proto__': 1, 'constructor': 2, '__keywords': True}2",
    );
  });
  it.each([
    ['a function', () => 1],
    ['an instance of a class', new Date()],
    [
      'an accessor',
      {
        get x() {
          return 1;
        },
      },
    ],
    ['a symbol', Symbol('x')],
  ])('refuses %s', (_name, value) => {
    expect(() => render('x', { value })).toThrow(expect.objectContaining({ code: 'INVALID_REQUEST' }));
  });
  it('refuses cycles and depth', () => {
    const cycle: Record<string, unknown> = {};
    cycle['me'] = cycle;
    expect(() => render('x', { cycle })).toThrow(/holds itself/);
    let deep: unknown = 1;
    for (let i = 0; i < 200; i++) deep = [deep];
    expect(() => render('x', { deep })).toThrow(/levels of nesting/);
  });
});

describe('parseToolArguments', () => {
  const messages = [{ role: 'assistant', tool_calls: [{ function: { name: 'f', arguments: '{"a": 1}' } }] }];
  const call = 'messages[0].tool_calls[0].function.arguments';

  it('hands objects to the template', () => {
    expect(renderChatTemplate({ template: `{{ ${call}.a }}`, messages, parseToolArguments: true })).toBe('1');
  });
  it('falls back to the text where the template wants it', () => {
    expect(renderChatTemplate({ template: `{{ 'x' + ${call} }}`, messages, parseToolArguments: true })).toBe(
      'x{"a": 1}',
    );
  });
  it('is off by default', () => {
    expect(renderChatTemplate({ template: `{{ ${call} is string }}`, messages })).toBe('True');
  });
});

describe('limits', () => {
  it.each([
    ['maxSteps', 1000, '{% for i in range(5000) %}{% endfor %}'],
    ['maxTotalCharacters', 1000, "{% for i in range(99) %}{{ 'x' * 50 }}{% endfor %}"],
    ['maxValueCharacters', 1000, "{% set x = 'x' * 2000 %}"],
    ['maxOutputCharacters', 10, 'more than ten characters'],
    ['maxDepth', 10, '{% macro m(n) %}{{ m(n - 1) if n }}{% endmacro %}{{ m(20) }}'],
    ['maxRangeLength', 10, '{{ range(11) }}'],
    ['maxIntegerBits', 100, '{{ 2 ** 101 }}'],
    ['maxTimeMs', 0, '{% for i in range(5000) %}{% endfor %}'],
  ] as const)('%s is an option', (name, value, template) => {
    expect(() => render(template, {}, { limits: { [name]: value } })).toThrow(
      expect.objectContaining({ code: 'TEMPLATE_FAILED' }),
    );
    expect(() => render(template)).not.toThrow();
  });
});

describe('the engine', () => {
  it('generates no code', () => {
    const forbidden = vi.fn(() => {
      throw new EvalError('Code generation from strings disallowed for this context');
    });
    vi.stubGlobal('Function', forbidden);
    expect(renderChatTemplate({ template: '{{ 1 + 1 }}', messages: [] })).toBe('2');
    vi.unstubAllGlobals();
    expect(forbidden).not.toHaveBeenCalled();
  });

  it('changes nothing of Nunjucks itself', () => {
    const nunjucks = createRequire(import.meta.url)('nunjucks') as {
      renderString(template: string, context: object): string;
    };
    render('{{ true }}');
    expect(nunjucks.renderString('{{ true }}{{ [1, 2] }}', {})).toBe('true1,2');
  });

  it('renders the same again from the cache', () => {
    const template = compileChatTemplate('{% set c = cycler(1, 2) %}{{ c.next() }}{{ c.next() }}');
    expect([template.render({ messages: [] }), template.render({ messages: [] })]).toEqual(['12', '12']);
  });
});
