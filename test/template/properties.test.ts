/** Python-like operations against answers computed another way: exact fractions, sorting by insertion, slices by counting. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { render } from './helpers.ts';

const RUNS = { numRuns: 150 } as const;

/** Integers of all sizes that JSON-like input can carry. */
const integer = fc.oneof(
  fc.integer(),
  fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }),
  fc.integer({ min: -9, max: 9 }),
);
const double = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.double({ min: -1000, max: 1000, noNaN: true }),
  fc.integer({ min: -4000, max: 4000 }).map((n) => n / 8),
);
/** A float as a template literal, so that 1.0 stays a float. */
function literal(x: number): string {
  const text = x.toExponential();
  if (Object.is(x, -0)) return '(-0.0)';
  return x < 0 ? `(${text})` : text;
}
const word = fc.oneof(
  fc.string({ unit: fc.constantFrom(...'abAB01 \t\n,-é😀漢ß<>&"\'') }),
  fc.string({ unit: 'grapheme' }),
);
const codePoints = (text: string): string[] => [...text];

/** Python's floor division and remainder by the definition: remainder has the divisor's sign. */
function floorDivMod(a: bigint, b: bigint): [bigint, bigint] {
  let remainder = a % b;
  if (remainder !== 0n && remainder < 0n !== b < 0n) remainder += b;
  return [(a - remainder) / b, remainder];
}

/** A double as numerator / 2^k, exactly. */
function fraction(x: number): { numerator: bigint; power: bigint } {
  let power = 0n;
  let value = x;
  while (!Number.isInteger(value)) {
    value *= 2;
    power++;
  }
  return { numerator: BigInt(value), power };
}

/** round(|x| * 10^places) on the exact value, halves to even. */
function roundExactly(x: number, places: number): bigint {
  const { numerator, power } = fraction(Math.abs(x));
  const top = numerator * 10n ** BigInt(places);
  const bottom = 1n << power;
  const whole = top / bottom;
  const twice = (top % bottom) * 2n;
  return twice > bottom || (twice === bottom && whole % 2n === 1n) ? whole + 1n : whole;
}

describe('integers', () => {
  it('add, subtract and multiply exactly', () => {
    fc.assert(
      fc.property(integer, integer, (a, b) => {
        const [x, y] = [BigInt(a), BigInt(b)];
        expect(render('{{ a + b }} {{ a - b }} {{ a * b }}', { a, b })).toBe(`${x + y} ${x - y} ${x * y}`);
      }),
      RUNS,
    );
  });

  it('divide towards the floor', () => {
    fc.assert(
      fc.property(
        integer,
        integer.filter((b) => BigInt(b) !== 0n),
        (a, b) => {
          const [quotient, remainder] = floorDivMod(BigInt(a), BigInt(b));
          expect(render('{{ a // b }} {{ a % b }}', { a, b })).toBe(`${quotient} ${remainder}`);
        },
      ),
      RUNS,
    );
  });

  it('compare and raise to powers exactly', () => {
    fc.assert(
      fc.property(integer, integer, fc.nat(12), (a, b, n) => {
        const [x, y] = [BigInt(a), BigInt(b)];
        const title = (value: boolean): string => (value ? 'True' : 'False');
        expect(render('{{ a < b }}{{ a == b }}{{ a >= b }} {{ a ** n }}', { a, b, n })).toBe(
          `${title(x < y)}${title(x === y)}${title(x >= y)} ${x ** BigInt(n)}`,
        );
      }),
      RUNS,
    );
  });

  it('group digits', () => {
    fc.assert(
      fc.property(integer, (a) => {
        const digits = BigInt(a).toLocaleString('en-US');
        expect(render("{{ '{:,}'.format(a) }}", { a })).toBe(digits);
      }),
      RUNS,
    );
  });
});

describe('floats', () => {
  it('print the shortest text that reads back, never without a point or exponent', () => {
    fc.assert(
      fc.property(double, (x) => {
        const text = render(`{{ ${literal(x)} }}`);
        expect(Number(text)).toBe(x);
        expect(text).toMatch(/[.e]/);
        const digits = text
          .replace(/e.*/, '')
          .replace(/[-.]/g, '')
          .replace(/^0+|0+$/g, '');
        expect(digits.length).toBeLessThanOrEqual(
          x.toExponential().replace(/e.*/, '').replace(/[-.]/g, '').length,
        );
      }),
      RUNS,
    );
  });

  it('format a fixed number of places, halves to even', () => {
    fc.assert(
      fc.property(
        double.filter((x) => Math.abs(x) < 1e21 && x !== 0),
        fc.nat(6),
        (x, places) => {
          const scaled = roundExactly(x, places)
            .toString()
            .padStart(places + 1, '0');
          const text = places === 0 ? scaled : `${scaled.slice(0, -places)}.${scaled.slice(-places)}`;
          const wanted = (x < 0 ? '-' : '') + text;
          expect(
            render(`{{ '%.${places}f' % ${literal(x)} }} {{ '{:.${places}f}'.format(${literal(x)}) }}`),
          ).toBe(`${wanted} ${wanted}`);
        },
      ),
      RUNS,
    );
  });

  it('round to the nearest, halves to even', () => {
    fc.assert(
      fc.property(
        double.filter((x) => Math.abs(x) < 1e15),
        fc.nat(4),
        (x, places) => {
          const wanted = Number(`${roundExactly(x, places)}e-${places}`) * (x < 0 ? -1 : 1);
          expect(Number(render(`{{ (${literal(x)})|round(${places}) }}`))).toBeCloseTo(wanted, 12);
          expect(Number(render(`{{ (${literal(x)})|round(${places}) }}`)) === wanted || wanted === 0).toBe(
            true,
          );
        },
      ),
      RUNS,
    );
  });

  it('split into quotient and remainder that fit together', () => {
    fc.assert(
      fc.property(
        double,
        double.filter((y) => Math.abs(y) > 1e-3),
        (x, y) => {
          fc.pre(Math.abs(x / y) < 2 ** 50);
          fc.pre(Math.abs(x) < 1e307 && Math.abs(y) < 1e307); // below, the sum is made with floats
          const [quotient, remainder] = render(
            `{{ ${literal(x)} // ${literal(y)} }} {{ ${literal(x)} % ${literal(y)} }}`,
          )
            .split(' ')
            .map(Number) as [number, number];
          expect(Number.isInteger(quotient)).toBe(true);
          expect(remainder === 0 || remainder < 0 === y < 0).toBe(true);
          expect(Math.abs(remainder)).toBeLessThanOrEqual(Math.abs(y));
          expect(Math.abs(quotient * y + remainder - x)).toBeLessThanOrEqual(
            1e-9 * Math.max(1, Math.abs(x), Math.abs(y)),
          );
        },
      ),
      RUNS,
    );
  });
});

/** A slice by walking the positions one after another. */
function slice<T>(items: readonly T[], start: number | null, stop: number | null, step: number): T[] {
  const { length } = items;
  const place = (at: number): number => (at < 0 ? at + length : at);
  const result: T[] = [];
  if (step > 0) {
    const from = start === null ? 0 : Math.max(0, place(start));
    const to = stop === null ? length : Math.min(length, place(stop));
    for (let i = from; i < to; i += step) result.push(items[i]!);
  } else {
    const from = start === null ? length - 1 : Math.min(length - 1, place(start));
    const to = stop === null ? -1 : Math.max(-1, place(stop));
    for (let i = from; i > to; i += step) result.push(items[i]!);
  }
  return result;
}

describe('sequences', () => {
  const bound = fc.option(fc.integer({ min: -8, max: 8 }));
  const step = fc.integer({ min: -3, max: 3 }).filter((n) => n !== 0);

  it('slice lists and texts', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(9), { maxLength: 6 }),
        word,
        bound,
        bound,
        step,
        (list, text, start, stop, by) => {
          const range = `${start ?? ''}:${stop ?? ''}:${by}`;
          expect(render(`{{ l[${range}]|tojson }}`, { l: list })).toBe(
            `[${slice(list, start, stop, by).join(', ')}]`,
          );
          expect(render(`{{ t[${range}] }}`, { t: text })).toBe(
            slice(codePoints(text), start, stop, by).join(''),
          );
        },
      ),
      RUNS,
    );
  });

  it('sort texts by code point, stably, forwards and backwards', () => {
    const byCodePoint = (a: string, b: string): number => {
      const [x, y] = [codePoints(a), codePoints(b)];
      for (let i = 0; i < Math.min(x.length, y.length); i++)
        if (x[i] !== y[i]) return x[i]!.codePointAt(0)! - y[i]!.codePointAt(0)!;
      return x.length - y.length;
    };
    fc.assert(
      fc.property(fc.array(fc.tuple(word, fc.nat(99)), { maxLength: 9 }), (pairs) => {
        const rows = pairs.map(([name, n], index) => ({ name, n, index }));
        for (const isReversed of [false, true]) {
          const sorted: typeof rows = []; // insertion sort: later equal rows stay behind
          for (const row of rows) {
            let at = sorted.length;
            const order = (other: (typeof rows)[number]): number =>
              byCodePoint(row.name, other.name) * (isReversed ? -1 : 1);
            while (at > 0 && order(sorted[at - 1]!) < 0) at--;
            sorted.splice(at, 0, row);
          }
          const text = render(
            "{{ l|sort(attribute='name', case_sensitive=true, reverse=r)|map(attribute='index')|list|tojson }}",
            { l: rows, r: isReversed },
          );
          expect(JSON.parse(text)).toEqual(sorted.map((row) => row.index));
        }
      }),
      RUNS,
    );
  });

  it('keep dicts in order and compare them without it', () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.string({ minLength: 1 }).filter((key) => !/^\d+$/.test(key)),
          fc.nat(9),
        ),
        (dict) => {
          const entries = Object.entries(dict);
          expect(JSON.parse(render('{{ d.keys()|list|tojson }}', { d: new Map(entries) }))).toEqual(
            entries.map(([key]) => key),
          );
          expect(render('{{ d == e }}', { d: new Map(entries), e: new Map(entries.reverse()) })).toBe('True');
        },
      ),
      RUNS,
    );
  });
});

describe('texts', () => {
  it('have code points, split and join back', () => {
    fc.assert(
      fc.property(word, fc.constantFrom('a', ',', '😀', ' ', 'ab'), (text, separator) => {
        expect(render('{{ t|length }}', { t: text })).toBe(String(codePoints(text).length));
        expect(
          render('{{ s.join(t.split(s)) == t }}{{ s.join(t.rsplit(s, 1)) == t }}', { t: text, s: separator }),
        ).toBe('TrueTrue');
        expect(JSON.parse(render('{{ t.split(s)|tojson }}', { t: text, s: separator }))).toEqual(
          text.split(separator),
        );
      }),
      RUNS,
    );
  });

  it('are escaped so that a browser reads them back', () => {
    const entities: Record<string, string> = {
      '&amp;': '&',
      '&lt;': '<',
      '&gt;': '>',
      '&#39;': "'",
      '&#34;': '"',
    };
    fc.assert(
      fc.property(word, (text) => {
        const escaped = render('{{ t|e }}', { t: text });
        expect(escaped).not.toMatch(/[<>"']/);
        expect(escaped.replace(/&(?:amp|lt|gt|#39|#34);/g, (entity) => entities[entity]!)).toBe(text);
        expect(render('{{ t|e|e }}', { t: text })).toBe(escaped);
        expect(render('{{ (t|e|forceescape|string)|length >= t|length }}', { t: text })).toBe('True');
      }),
      RUNS,
    );
  });

  it('become JSON that reads back, in ASCII where asked', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = render('{{ v|tojson }}', { v: value });
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
        const ascii = render('{{ v|tojson(ensure_ascii=true, indent=1) }}', { v: value });
        expect(ascii).toMatch(/^[\n -~]*$/);
        expect(JSON.parse(ascii)).toEqual(JSON.parse(text));
      }),
      RUNS,
    );
  });

  it('are padded and cut to a width in code points', () => {
    fc.assert(
      fc.property(word, fc.nat(12), fc.nat(12), (text, width, precision) => {
        const cut = codePoints(text).slice(0, precision).join('');
        const blanks = Math.max(0, width - codePoints(cut).length);
        const args = { t: text };
        expect(render(`{{ '{:*^${width}.${precision}}'.format(t) }}`, args)).toBe(
          '*'.repeat(blanks >> 1) + cut + '*'.repeat(blanks - (blanks >> 1)),
        );
        expect(render(`{{ '%-${width}.${precision}s|' % t }}`, args)).toBe(`${cut}${' '.repeat(blanks)}|`);
      }),
      RUNS,
    );
  });

  it('keep what they say in templates, whatever is in them', () => {
    fc.assert(
      fc.property(word, (text) => {
        expect(render('{{ messages[0].content }}', {}, { messages: [{ content: text }] })).toBe(text);
      }),
      RUNS,
    );
  });
});
