/** Random numbers -> the extremes of each JSON type, and what only a caller in this process can pass. */

/** One extreme value. */
export type Extreme = {
  /** Short, for messages. */
  readonly name: string;
  /** Makes it anew, so that no draw changes another's. */
  readonly make: () => unknown;
  /** JSON can hold it. */
  readonly isJson: boolean;
  /** It has megabytes: drawn seldom. */
  readonly isLarge?: true;
};

const json = (...values: unknown[]): Extreme[] =>
  values.map((value) => ({
    name: (JSON.stringify(value) ?? 'undefined').slice(0, 60),
    make: () => structuredClone(value),
    isJson: true,
  }));

const inProcess = (name: string, make: () => unknown): Extreme => ({ name, make, isJson: false });

const large = (name: string, make: () => unknown): Extreme => ({ name, make, isJson: true, isLarge: true });

/** A value inside `depth` lists or objects. */
function tower(depth: number, wrap: (inner: unknown) => unknown): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level++) value = wrap(value);
  return value;
}

const throwing = (): object => ({
  get a(): never {
    throw new TypeError('this getter throws');
  },
});

const NUMBERS = [
  ...[0, -0, 1, -1, 2, -2, 0.5, -0.5, 1.5, 100, 127, 128, 129, 255, 256, 1e3, 65_535, 65_536, 1e5, 1e6],
  ...[5e-324, -5e-324, 2.2e-308, 1e-45, 1e-38, 1e-37, 1e-300, 1e-9, 1e9, 1e38, 1e39, 3.5e38, -1e39, 1e300],
  ...[1e308, -1e308, Number.MAX_VALUE, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), 2 ** 32, 2 ** 53 - 1, 2 ** 53],
  ...[-(2 ** 53), 2 ** 63, -(2 ** 63), 2 ** 64, 16_384, 16_385],
];

const TEXTS = [
  ...[
    '',
    ' ',
    '\n',
    '\0',
    'a',
    'Hi',
    '0',
    '-1',
    '1e999',
    'null',
    'true',
    '{}',
    '[]',
    '(',
    '[',
    '*',
    '\\',
    '{{',
  ],
  ...[
    '{% for x in y %}',
    '{{ 1 / 0 }}',
    '{% raw %}',
    '\ud800',
    '\udc00a',
    'a\ud800',
    '\u2028',
    '\ufeff',
    'é',
  ],
  ...['\u{1f600}', '<|im_end|>', '<|im_start|>', '<think>', 'hf:', 'hf:a/b', '../../x', '/dev/null', 'C:\\x'],
  ...[
    'constructor',
    '__proto__',
    'toString',
    'a@1',
    'a@99999999999999999999',
    'root ::= root',
    'root ::= "a"',
  ],
  ...['user', 'text', 'auto', 'none', 'required', 'json_object', 'onpolicy-tiny', 'low', '%', '%s', '\r\n'],
  ...['00000000-0000-4000-8000-000000000000', '2026-01-31T12:00:00Z', 'x'.repeat(1000)],
];

/** All of them. */
export const EXTREMES: readonly Extreme[] = [
  ...json(null, true, false, ...NUMBERS.map((number) => number)),
  ...json(...TEXTS),
  ...json([], {}, [null], [[]], [{}], [''], ['a'], [0], [-1], [1.5], [1, 'a', null], { a: 1 }, { '': '' }),
  ...json({ 0: 1 }, { 1: 1e308 }, { '-1': 1 }, { type: 'text' }, { type: 'function' }, { role: 'user' }),
  ...json(
    { role: 'user', content: 'a' },
    { type: 'json_object' },
    { regex: 'a' },
    { json: {} },
    { choice: ['a'] },
  ),
  { name: '-0', make: () => -0, isJson: true },
  { name: '__proto__ as a key', make: () => JSON.parse('{"__proto__":{"a":1}}'), isJson: true },
  { name: 'a constructor', make: () => ({ constructor: { prototype: { a: 1 } } }), isJson: true },
  large('10 MB of text', () => 'a'.repeat(10_000_000)),
  large('10 MB of blanks', () => ' '.repeat(10_000_000)),
  large('10 MB of lone surrogates', () => '\ud800'.repeat(5_000_000)),
  large('100,000 numbers', () => Array.from({ length: 100_000 }, (_, i) => i)),
  large('100,000 texts', () => Array.from({ length: 100_000 }, (_, i) => `t${i}`)),
  large('100,000 nulls', () => new Array(100_000).fill(null)),
  { name: 'a long holed list', make: () => Object.assign([], { length: 1e5 }), isJson: true, isLarge: true },
  large('100,000 objects', () => Array.from({ length: 100_000 }, () => ({}))),
  large('100,000 fields', () => Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`f${i}`, i]))),
  { name: '10,000 lists deep', make: () => tower(10_000, (inner) => [inner]), isJson: false },
  { name: '10,000 objects deep', make: () => tower(10_000, (a) => ({ a })), isJson: false },
  { name: '300 objects deep', make: () => tower(300, (a) => ({ a })), isJson: true },
  { name: '200 lists deep', make: () => tower(200, (inner) => [inner]), isJson: true },
  inProcess('undefined', () => undefined),
  inProcess('NaN', () => Number.NaN),
  inProcess('Infinity', () => Infinity),
  inProcess('-Infinity', () => -Infinity),
  inProcess('0n', () => 0n),
  inProcess('2n ** 64n', () => 2n ** 64n),
  inProcess('-(2n ** 63n)', () => -(2n ** 63n)),
  inProcess('a symbol', () => Symbol('s')),
  inProcess('a function', () => () => 1),
  inProcess('a Date', () => new Date(0)),
  inProcess('a broken Date', () => new Date(Number.NaN)),
  inProcess('a Map', () => new Map([['a', 1]])),
  inProcess('a Set', () => new Set([1])),
  inProcess('a Uint8Array', () => new Uint8Array(4)),
  inProcess('a boxed number', () => Object(5)),
  inProcess('a RegExp', () => /a/),
  inProcess('a promise', () => Promise.resolve(1)),
  inProcess('no prototype', () => Object.create(null)),
  inProcess('an inherited field', () => Object.create({ type: 'text', role: 'user', content: 'a' })),
  inProcess('a getter that throws', throwing),
  inProcess('a list with a getter that throws', () => [throwing()]),
  inProcess('a proxy that throws', () => new Proxy({}, { get: () => throwing().valueOf.call(null) })),
  inProcess('a revoked proxy', () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  }),
  inProcess('a holed list', () => [undefined, undefined]),
  inProcess('an object inside itself', () => {
    const loop: Record<string, unknown> = {};
    loop['a'] = loop;
    return loop;
  }),
  inProcess('toString that throws', () => ({
    toString() {
      throw new Error('no text');
    },
  })),
  inProcess('toJSON', () => ({ toJSON: () => 5 })),
];
