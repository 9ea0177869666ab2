/** Hostile templates -> errors within the budgets. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { renderChatTemplate } from '../../src/template/index.ts';
import { dataFile } from './helpers.ts';

type Attack = {
  readonly id: string;
  readonly template: string;
  readonly args: { readonly messages?: unknown };
  readonly expect: 'error' | 'output' | 'fast';
  readonly output?: string;
};

/** The short notation of the attack files, written out. */
function expand(attack: Attack): { template: string; messages: unknown[] } {
  const repeat = /^(REPEAT_SPACES|RAWS|BRACES|TAGS|STRLIT):(\d+)([\s\S]*)$/.exec(attack.template);
  let { template } = attack;
  if (repeat !== null) {
    const count = Number(repeat[2]);
    const forms: Readonly<Record<string, () => string>> = {
      REPEAT_SPACES: () => `a${' '.repeat(count)}${repeat[3]}`,
      RAWS: () => `{% raw %}${'{% raw %}'.repeat(count)}{% endraw %}`,
      BRACES: () => `{${' {'.repeat(count)}`,
      TAGS: () => 'x{% if 0 %}{% endif %}'.repeat(count),
      STRLIT: () => `{{ "${'a'.repeat(count)}"|length }}`,
    };
    template = forms[repeat[1]!]!();
  }
  const given = attack.args.messages ?? [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: 'yo' },
  ];
  if (typeof given !== 'string') return { template, messages: given as unknown[] };
  const [kind, value] = [given.slice(0, given.indexOf(':')), given.slice(given.indexOf(':') + 1)];
  const user = (content: string): unknown => ({ role: 'user', content });
  const messages: Readonly<Record<string, () => unknown[]>> = {
    REPEAT: () => Array.from({ length: Number(value) }, () => user('x')),
    JSON: () => JSON.parse(value) as unknown[],
    SPACES: () => [user(`a${' '.repeat(Number(value))}b`)],
    LT: () => [user('<'.repeat(Number(value)))],
  };
  return { template, messages: messages[kind]!() };
}

describe('attacks', () => {
  for (const file of ['attacks.json', 'attacks-data.json']) {
    const path = dataFile(file);
    const attacks = path === null ? [] : (JSON.parse(readFileSync(path, 'utf8')) as Attack[]);
    it.skipIf(path === null)(`fill ${file}`, () => expect(attacks.length).toBeGreaterThan(0));
    it.each(attacks)(
      '$id',
      (attack) => {
        const { template, messages } = expand(attack);
        const before = JSON.stringify(messages);
        const start = performance.now();
        const outcome = ((): { text: string } | { error: Error } => {
          const input = { messages, addGenerationPrompt: true, bosToken: '<s>', eosToken: '</s>' };
          try {
            return { text: renderChatTemplate({ template, ...input }) };
          } catch (error) {
            return { error: error as Error };
          }
        })();
        expect(performance.now() - start).toBeLessThan(6000); // real time: the budget of 2 s is under test
        if (attack.expect === 'error') expect(outcome).toMatchObject({ error: { name: 'OnpolicyError' } });
        if (attack.expect === 'output') expect(outcome).toEqual({ text: attack.output });
        expect(JSON.stringify(messages)).toBe(before);
        expect((globalThis as Record<string, unknown>)['__pwned']).toBeUndefined();
        expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
        expect(Object.keys(Object.prototype)).toEqual([]);
      },
      20_000,
    );
  }
});

/** Attacks of further kinds: each must end in a clean error. */
const MORE_ATTACKS = [
  '{% set n = namespace(t=(1,)) %}{% for i in range(60) %}{% set n.t = (n.t, n.t) %}{% endfor %}{{ {n.t: 1} }}',
  '{% set n = namespace(a=[1], b=[1]) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}{% set n.b = [n.b, n.b] %}{% endfor %}{{ n.a == n.b }}',
  '{% set n = namespace(g=[1]) %}{% for i in range(90000) %}{% set n.g = n.g|map("string") %}{% endfor %}{{ n.g|list }}',
  "{{ strftime_now('%100d' * 1000000)|length }}",
  "{{ ('-' * 5000000)|wordwrap(10)|length }}",
  "{{ (('.' * 1000 ~ 'x ') * 5000)|urlize|length }}",
  "{{ ('{}' * 3000000).format(*range(99999)|list) }}",
  "{{ [1]|map(attribute='a' ~ '.a' * 3000000)|list }}",
  '{% block q %}{{ self.q() }}{% endblock %}',
  '{% set n = namespace(v=3) %}{% for i in range(64) %}{% set n.v = n.v * n.v %}{% endfor %}',
  "{% set n = namespace(s='a') %}{% for i in range(64) %}{% set n.s = n.s.join([n.s, n.s]) %}{% endfor %}",
  "{% set s = 'ab' * 3000000 %}{% for i in range(99999) %}{% set x = s.find('zzz') %}{% endfor %}",
  "{{ (messages|map('attr', 'constructor')|list)[0].constructor('return 1')() }}",
  "{{ '{0[__proto__][x]}'.format({}) }}",
  '{{ namespace().__proto__.x }}',
  '{{ globalThis.process.exit() }}',
  '{{ ({}|items).constructor("x")() }}',
  '{{ k0.x }}{{ o.locate.x }}{{ s.limits.x }}',
  '{% extends "x" %}',
  `{{ ${'('.repeat(300)}1${')'.repeat(300)} }}`,
  `{{ ${'x.a'.repeat(600)} }}`,
];

describe('further attacks', () => {
  it.each(MORE_ATTACKS.map((template) => [template.slice(0, 90), template] as const))(
    '%s',
    (_name, template) => {
      expect(() => renderChatTemplate({ template, messages: [{ role: 'user', content: 'x' }] })).toThrow(
        expect.objectContaining({ code: 'TEMPLATE_FAILED' }),
      );
    },
    20_000,
  );

  it('parses many small tags in linear time', () => {
    const template = Array.from(
      { length: 6000 },
      (_, i) => `{% if a${i} %}{% set b${i} = 1 %}{% endif %}`,
    ).join('');
    expect(renderChatTemplate({ template, messages: [] })).toBe('');
  }, 10_000);
});
