/** Templates of each language feature -> their text. */
import { describe, expect, it } from 'vitest';
import { compileChatTemplate } from '../../src/template/index.ts';
import { render } from './helpers.ts';

/** [template, text] */
const ROWS: Readonly<Record<string, readonly (readonly [template: string, text: string])[]>> = {
  printing: [
    ['{{ [1, 1.0, true, none, "a\'b", (1,), {}] }}', '[1, 1.0, True, None, "a\'b", (1,), {}]'],
    [
      '{{ 1e16 }} {{ 1e15 }} {{ 1e-5 }} {{ 0.0001 }} {{ -0.0 }}',
      '1e+16 1000000000000000.0 1e-05 0.0001 -0.0',
    ],
    ['{{ 2 ** 100 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }}', '1267650600228229401496703205376 -4 2 3.5'],
    ['{{ missing }}|{{ missing is defined }}', '|False'],
    ['{{ {"a": 1}[] }}|{{ [1][] is defined }}|{{ "a"[] is defined }}', '|False|False'],
    ['{{ "x" ~ 1 ~ none }}{{ ("<"|safe) + "<" }}', 'x1None<&lt;'],
  ],
  hidden: [
    [
      '{{ {"__kind__": 1}.__kind__ }}{{ {}.__kind__ is defined }}{{ "a".__class__ is defined }}',
      '1FalseFalse',
    ],
  ],
  precedence: [
    ['{{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ 2 ~ 3 * 4 }}', '64 4 212'],
    ['{{ not 1 == 2 and 3 }} {{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 if 0 }}|', '3 True False |'],
    ['{{ true in [[1] is defined] }}', 'True'],
    ['{{ 5 is divisibleby 5 and 1 is odd }}', 'True'],
  ],
  scoping: [
    ['{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = 5 %}{% endfor %}{{ x }}', '111'],
    ['{% set n = namespace(x=0) %}{% for i in [1, 2] %}{% set n.x = n.x + i %}{% endfor %}{{ n.x }}', '3'],
    ['{% macro m() %}{{ g }}{% endmacro %}{% set g = 1 %}{{ m() }}{% set g = 2 %}{{ m() }}', '12'],
    ['{% for i in [1] %}{% if false %}{% set k = 5 %}{% endif %}{{ k }}{% endfor %}', 'K'],
    ['{% set k %}[{{ k }}]{% endset %}{{ k }}', '[]'], // a block that sets a name does not see the outer one
    ['{% for i in [1] %}{{ k }}{% endfor %}{% set k = 1 %}{{ k }}', '1'], // nor does a loop before the name is set
    ['{% if true %}{% set k = 1 %}{% endif %}{% for i in [1] %}{{ k }}{% endfor %}', '1'],
    ['{% if false %}{% set k = 1 %}{% endif %}{% macro m() %}{{ k }}{% endmacro %}{{ m() }}', 'K'],
    ['{% filter replace("a", x) %}{% set x = "b" %}a{% endfilter %}{{ x is defined }}', 'bFalse'],
    ['{% set y | replace("a", x) %}{% set x = "b" %}a{% endset %}{{ y }}', 'b'],
    [
      '{% macro m() %}{% for i in [1, 2] %}{% set k = k ~ i %}{{ k }}{% endfor %}{% endmacro %}{{ m() }}',
      'K1K2',
    ],
    ['{% for i in [1, 2] if i == n %}{{ i }}{% else %}none{% endfor %}{% set n = 1 %}', 'none'],
    ['{% for i in [1, 2] %}{% block c %}{{ i is defined }}{{ k }}{% endblock %}{% endfor %}', 'FalseKFalseK'],
    ['{% with a = 1, b = k %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}', '1KFalse'],
    [
      '{% block b %}{% set z = 1 %}{{ z }}{% endblock %}{{ z is defined }}{{ self is defined }}',
      '1FalseTrue',
    ],
  ],
  loops: [
    [
      '{% for i in [3, 4] %}{{ loop.index }}{{ loop.last }}{{ loop.previtem }};{% endfor %}',
      '1False;2True3;',
    ],
    ['{% for i in [1, 2, 3] if i != 2 %}{{ loop.length }}{{ i }}{% else %}e{% endfor %}', '2123'],
    ['{% for i in [] %}x{% else %}e{% endfor %}', 'e'],
    [
      '{% for x in [[1, [2]], 3] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}{% endif %}{% endfor %}',
      '(1(2))3',
    ],
    [
      '{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}{% if i > 2 %}{% break %}{% endif %}{{ i }}{% endfor %}',
      '02',
    ],
    ['{% for i in [1] %}{% break %}{% else %}else{% endfor %}', 'else'], // Jinja2 asks whether a body ran to its end
  ],
  macros: [
    ['{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, b=2) }}', '1112'],
    ['{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, x=2) }}', "(1,){'x': 2}"],
    ['{% macro m() %}[{{ caller(3) }}]{% endmacro %}{% call(x) m() %}{{ x }}{% endcall %}', '[3]'],
  ],
  whitespace: [
    ['a\n  {% if true %}\nb\n  {% endif %}\nc', 'a\nb\nc'],
    ['a {%- if true -%} b {%- endif %} c\n', 'ab c'],
    ['a\n  {%+ if true +%}\nb{% endif %}', 'a\n  \nb'],
    ['{% raw %}{{ x }}{% endraw %}\r\n{# c #}\nd', '{{ x }}d'],
  ],
  text: [
    ['{{ "é😀x"|length }}{{ "é😀x"[1] }}{{ "é😀x"[::-1] }}', '3😀x😀é'],
    [
      '{{ " a  b ".split() }}{{ "a,b,c".split(",", 1) }}{{ "a b c".rsplit(None, 1) }}',
      "['a', 'b']['a', 'b,c']['a b', 'c']",
    ],
    ['{{ "don\'t x1y".title() }} {{ "don\'t x1y"|title }}', "Don'T X1Y Don't X1y"],
    ['{{ "%05.1f|%-4s|%x" % (2.25, "a", 255) }}', '002.2|a   |ff'],
    ['{{ "{:>5}|{:,}|{:.2%}".format("a", 1234567, 0.125) }}', '    a|1,234,567|12.50%'],
  ],
  json: [
    ['{{ {"a": [1, 1.0, none], "é": "<>"}|tojson }}', '{"a": [1, 1.0, null], "é": "<>"}'],
    [
      '{{ [1]|tojson(indent=2) }}{{ {"é": 1}|tojson(ensure_ascii=true, separators=(",", ":")) }}',
      '[\n  1\n]{"\\u00e9":1}',
    ],
  ],
};

for (const [group, rows] of Object.entries(ROWS))
  describe(group, () => {
    it.each(rows)('%s', (template, text) => {
      expect(render(template, { k: 'K' })).toBe(text);
    });
  });

describe('strictness', () => {
  it.each([
    '{{ missing.x }}',
    '{{ "a" + 1 }}',
    '{{ none|length }}',
    '{{ [].append(1) }}',
    '{{ missing|tojson }}',
    '{{ 1|nosuch }}',
    '{% if true %}{{ 1|nosuch }}{% endif %}',
    '{% break %}',
    '{% for a, b in [[1]] %}{% endfor %}',
    '{% include "x" %}',
    '{% set x.y = 1 %}',
    '{{ [2, "a"]|sort }}',
  ])('%s fails', (template) => {
    expect(() => render(template)).toThrow(expect.objectContaining({ code: 'TEMPLATE_FAILED' }));
  });

  it.each<readonly [string, string]>([
    ...['include "x"', 'import "x" as y', 'from "x" import y', 'extends "x"', 'autoescape true'].map(
      (tag) => [tag.split(' ')[0]!, `{% if false %}{% ${tag} %}{% endif %}`] as const,
    ),
    ['scoped', '{% block a scoped %}{% endblock %}'],
    ['required', '{% block a required %}{% endblock %}'],
    ['urlize', '{% if false %}{{ "x"|urlize }}{% endif %}'],
    ['wordwrap', '{{ "x"|wordwrap }}'],
    ['pprint', '{{ 5|pprint }}'],
  ])('refuses %s by name, also where it is not reached', (name, template) => {
    expect(() => compileChatTemplate(template)).toThrow(
      new RegExp(`'${name}'.*not supported in chat templates`),
    );
  });

  it('lets an unknown filter stand where it is not reached', () => {
    expect(render('{% if false %}{{ 1|nosuch }}{% endif %}ok')).toBe('ok');
  });
});

describe('strftime_now', () => {
  it.each([
    ['%Y-%m-%d %H:%M:%S', '2026-01-05 09:07:03'],
    ['%d %b %Y, %A %B, %-d %e %j %p', '05 Jan 2026, Monday January, 5  5 005 AM'],
    ['%y %I %% %U %W %u %w %c', '26 09 % 01 01 1 1 Mon Jan  5 09:07:03 2026'],
  ])('%s', (format, text) => {
    const now = (): Date => new Date(2026, 0, 5, 9, 7, 3);
    expect(render(`{{ strftime_now('${format}') }}`, {}, { now })).toBe(text);
  });
});
