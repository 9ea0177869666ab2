/** Random templates against Jinja2 itself, where python3 with jinja2 is installed. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { render } from './helpers.ts';

const ORACLE = fileURLToPath(new URL('oracle.py', import.meta.url));
const isPresent = spawnSync('python3', ['-c', 'import jinja2'], { timeout: 20_000 }).status === 0;
if (!isPresent) process.stderr.write('skipped: python3 with jinja2 is not installed\n');

const KWARGS = {
  s: 'Hello World',
  u: 'é😀漢',
  n: null,
  i: 7,
  l: [1, 2, 3, 4, 5],
  ls: ['b', 'a', 'C'],
  d: { b: 1, a: [1, { x: null }], 'c d': 'q\'"z' },
  ml: [
    { role: 'user', n: 2 },
    { role: 'tool', n: 1 },
  ],
};

const atom = fc.constantFrom(
  ...'s u n i l ls d ml undef 0 1 -3 2.5 1e16 "" "a,b" " x " [] {} (1,) true none range(3)'.split(' '),
);
const filter = fc.constantFrom(
  ...'upper title|trim length list|string|first last join(",") sort|reverse|list tojson tojson(indent=1) int float round(1) abs default("D") dictsort items|list unique|list sum max min batch(2)|list replace("l","L") indent e|string map("string")|list select|list wordcount center(9) urlencode'.split(
    ' ',
  ),
);
const method = fc.constantFrom(
  ...'upper() split() split(",") strip() title() find("l") replace("a","b") startswith("H") items() get("b") keys() index(2) count(1) b role nosuch append(1) splitlines() zfill(5)'.split(
    ' ',
  ),
);
const operator = fc.constantFrom(...'+ - * / // % ~ == != < <= in and or'.split(' '), 'not in');
const test = fc.constantFrom(
  ...'defined none string number mapping iterable sequence odd integer'.split(' '),
);
const subscript = fc.constantFrom(...'[0] [-1] [1:] [::-1] [:2] ["b"] [9]'.split(' '));

const { expression } = fc.letrec<{ expression: string }>((tie) => {
  const inner = tie('expression');
  return {
    expression: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      atom,
      fc.tuple(inner, filter).map(([value, name]) => `(${value})|${name}`),
      fc.tuple(inner, method).map(([value, name]) => `(${value}).${name}`),
      fc.tuple(inner, subscript).map(([value, key]) => `(${value})${key}`),
      fc.tuple(inner, operator, inner).map((parts) => `(${parts.join(' ')})`),
      fc.tuple(inner, test).map(([value, name]) => `((${value}) is ${name})`),
      fc.tuple(inner, inner).map(([a, b]) => `[${a}, ${b}]`),
      fc.tuple(inner, inner, inner).map(([a, b, c]) => `(${a} if ${b} else ${c})`),
    ),
  };
});
const statement = fc.oneof(
  expression.map((value) => `{{ ${value} }}`),
  expression.map((value) => `{% set s = ${value} %}`),
  fc
    .tuple(expression, expression)
    .map(
      ([a, b]) =>
        ` {%- for x in ${a} %} {{ x ~ loop.last }} {% set s = x %}{% else %}{{ ${b} }}\n{% endfor %}\n`,
    ),
  fc.tuple(expression, expression).map(([a, b]) => `\n  {% if ${a} %}\n {{ ${b} }} {% endif -%} \n`),
  expression.map((value) => `{% macro m(a, b=${value}) %}{{ a }}{{ b }}{{ s }}{% endmacro %}{{ m(1) }}`),
);
const template = fc.array(statement, { minLength: 1, maxLength: 4 }).map((parts) => parts.join(''));

describe.skipIf(!isPresent)('Jinja2', () => {
  it('gives the same text, or fails too', () => {
    const templates = [...new Set(fc.sample(template, 800))].filter((text) => text.length < 2000);
    const input = templates.map((text) => JSON.stringify({ template: text, kwargs: KWARGS })).join('\n');
    const { stdout } = spawnSync('python3', [ORACLE], {
      input,
      encoding: 'utf8',
      timeout: 60_000,
      maxBuffer: 1e9,
    });
    const answers = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { output?: string; error?: string });
    expect(answers).toHaveLength(templates.length);
    const different = templates.flatMap((text, index) => {
      const { output, error } = answers[index]!;
      // Addresses cannot agree, and Jinja2 folds slices of constants differently.
      if (output !== undefined && / at 0x|object at/i.test(output)) return [];
      let ours: string | undefined;
      try {
        ours = render(text, KWARGS);
      } catch (failure) {
        if (/not subscriptable|'slice'/.test(String(failure))) return [];
      }
      return ours === output ? [] : [{ template: text, jinja2: output ?? error, ours }];
    });
    expect(different).toEqual([]);
  }, 120_000);
});
