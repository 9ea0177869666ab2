/** Lists that a template made: `append` and `pop`, where the caller allows it. */
import { describe, expect, it } from 'vitest';
import { renderChatTemplate } from '../../src/template/index.ts';

const render = (template: string, growsLists = true): string =>
  renderChatTemplate({ template, messages: [], kwargs: { given: [1] }, growsLists });

describe('lists of the template', () => {
  it.each([
    ['{% set l = [1] %}{{ l.append(2) }}{{ l }}{{ l | length }}', 'None[1, 2]2'],
    [
      '{% set ns = namespace(ids=[]) %}{% for i in range(3) %}{% set _ = ns.ids.append(i) %}{% endfor %}{{ ns.ids.pop(0) }}{{ ns.ids.pop() }}{{ ns.ids }}',
      '02[1]',
    ],
    ['{% set l = [1, 2, 3] %}{{ l.pop(-2) }}{{ l }}', '2[1, 3]'],
  ])('%s', (template, expected) => expect(render(template)).toBe(expected));

  it.each([
    ['{% set l = [] %}{{ l.pop() }}', 'pop index out of range'],
    ['{% set l = [1] %}{{ l.pop(1) }}', 'pop index out of range'],
    ['{% set l = [] %}{{ l.append(l) }}{{ l }}', 'budget: depth'],
    ['{% set l = [] %}{% set m = [l] %}{{ l.append({"a": m}) }}{{ l | tojson }}', 'budget: depth'],
    ['{% set l = [] %}{% set m = [] %}{{ l.append(l) }}{{ m.append(m) }}{{ l == m }}', 'budget: depth'],
    ['{% set l = [] %}{{ l.extend([1]) }}', 'unsafe'],
    ['{{ messages.append(1) }}', 'unsafe'],
    ['{{ given.append(1) }}', 'unsafe'],
    ['{% set l = [1] %}{% for x in l %}{{ l.append(1) }}{% endfor %}', 'budget'],
  ])('%s', (template, message) => expect(() => render(template)).toThrow(new RegExp(message, 'i')));

  it('stay as they are by default', () => {
    expect(() => render('{% set l = [] %}{{ l.append(1) }}', false)).toThrow('unsafe');
  });
});
