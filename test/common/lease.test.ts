import { expect, it } from 'vitest';
import { LeaseScope, lease } from '../../src/common/index.ts';

/** A scope with two leases that say when they end. */
function scopeOf(ended: string[]): LeaseScope {
  const scope = new LeaseScope();
  for (const name of ['first', 'second']) scope.add(lease(() => ended.push(name)));
  return scope;
}

it('a lease ends once', () => {
  const ended: string[] = [];
  const one = lease(() => ended.push('one'));
  one[Symbol.dispose]();
  one[Symbol.dispose]();
  expect(ended).toEqual(['one']);
});

it.each<[string, (scope: LeaseScope) => void, string[]]>([
  ['ends its leases with itself, the last one first', () => {}, ['second', 'first']],
  ['leaves out what is no lease', (scope) => scope.add(null), ['second', 'first']],
  ['leaves leases to the value that owns them', (scope) => scope.handOver({}), []],
  [
    'leaves them to be ended by that value',
    (scope) => scope.handOver({})[Symbol.dispose](),
    ['second', 'first'],
  ],
])('a scope %s', (_, act, expected) => {
  const ended: string[] = [];
  {
    using scope = scopeOf(ended);
    act(scope);
  }
  expect(ended).toEqual(expected);
});

it('a scope ends its leases when the work in it fails', () => {
  const ended: string[] = [];
  expect(() => {
    using _scope = scopeOf(ended);
    throw new Error('failed');
  }).toThrow('failed');
  expect(ended).toEqual(['second', 'first']);
});
