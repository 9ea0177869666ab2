/** A name -> the method of str. Markup has the same methods with Markup as result. */
import { truth } from '../compare.ts';
import { formatBraces } from '../format-braces.ts';
import { iterate } from '../iterate.ts';
import { countOf, intOf } from '../numbers.ts';
import { typeError, valueError } from '../py-error.ts';
import type { RenderState } from '../render-state.ts';
import { sliceIndex } from '../slices.ts';
import { Table } from '../table.ts';
import { escapeValue } from '../text.ts';
import * as unicode from '../unicode.ts';
import { Dict, Markup, Tuple, textOf, typeName, type Value } from '../values.ts';
import * as search from './str-search.ts';

/** A method: text, bound arguments, and whether the text is Markup. */
type Body = (
  state: RenderState,
  text: string,
  args: readonly (Value | undefined)[],
  isMarkup: boolean,
) => Value;

/** Name -> method. */
export const STR_METHODS = new Table<Value, string | Markup>();

STR_METHODS.set('format', (state, self, ...given) => formatBraces(state, self, given));

function method(name: string, parameters: string, body: Body): void {
  STR_METHODS.add(name, parameters, (state, self, args) => {
    if (typeof self === 'string') {
      state.scan(self.length);
      return body(state, self, args, false);
    }
    state.scan(self.text.length);
    return markAll(body(state, self.text, args, true));
  });
}

/** Converts text to Markup, also inside a list or tuple. */
function markAll(value: Value): Value {
  if (typeof value === 'string') return new Markup(value);
  if (Array.isArray(value)) return value.map(markAll);
  return value instanceof Tuple ? new Tuple(value.items.map(markAll)) : value;
}

function text(value: Value | undefined, what: string): string {
  const result = value === undefined ? undefined : textOf(value);
  return result ?? typeError(`${what} must be str, not ${typeName(value ?? null)}`);
}

function bound(value: Value | undefined): number | null {
  return value === undefined || value === null ? null : sliceIndex(value);
}

method('upper', '', (state, self) => state.made(self.toUpperCase()));
method('lower', '', (state, self) => state.made(self.toLowerCase()));
method('capitalize', '', (state, self) => state.made(unicode.capitalize(self)));

function byCharacter(change: (self: string) => string): Body {
  return (state, self) => {
    state.work(self.length >> 1);
    return state.made(change(self));
  };
}
method('title', '', byCharacter(unicode.titleText));
method('swapcase', '', byCharacter(unicode.swapCase));
method('casefold', '', byCharacter(unicode.casefold));

for (const [name, left, right] of [
  ['strip', true, true],
  ['lstrip', true, false],
  ['rstrip', false, true],
] as const)
  method(name, 'chars? /', (state, self, [characters = null]) =>
    state.made(
      search.strip(
        self,
        characters === null ? unicode.SPACES : new Set(text(characters, 'strip arg')),
        left,
        right,
      ),
    ),
  );

function split(
  state: RenderState,
  self: string,
  separator: Value,
  limit: Value | undefined,
  isBackwards: boolean,
) {
  const count = limit === undefined ? -1 : countOf(limit);
  const at = (part: string): string => (isBackwards ? search.backwards(part) : part);
  state.reserve(self.length);
  const parts =
    separator === null
      ? search.splitSpaces(state, at(self), count)
      : search.splitBy(state, at(self), at(text(separator, 'sep')), count);
  return isBackwards ? parts.map(at).reverse() : parts;
}
method('split', 'sep? maxsplit?', (state, self, [sep = null, limit]) =>
  split(state, self, sep, limit, false),
);
method('rsplit', 'sep? maxsplit?', (state, self, [sep = null, limit]) =>
  split(state, self, sep, limit, true),
);
method('splitlines', 'keepends?', (state, self, [keepEnds]) => {
  state.reserve(self.length);
  return search.splitLines(state, self, keepEnds !== undefined && truth(state, keepEnds));
});
for (const name of ['partition', 'rpartition'])
  method(name, 'sep /', (state, self, [separator]) => {
    const part = text(separator, 'sep');
    if (part === '') valueError('empty separator');
    const at = name === 'partition' ? self.indexOf(part) : self.lastIndexOf(part);
    state.reserve(self.length);
    if (at < 0) return new Tuple(name === 'partition' ? [self, '', ''] : ['', '', self]);
    return new Tuple([self.slice(0, at), part, self.slice(at + part.length)]);
  });

function startsOrEnds(name: 'startswith' | 'endswith'): Body {
  return (_state, self, [affix, start, end]) => {
    const window = search.windowOf(self, bound(start), bound(end));
    const matches = (value: Value): boolean => {
      const candidate = textOf(value);
      if (candidate === undefined)
        return typeError(`${name} first arg must be str or a tuple of str, not ${typeName(value)}`);
      if (window === null) return false;
      return name === 'startswith' ? window.text.startsWith(candidate) : window.text.endsWith(candidate);
    };
    return affix instanceof Tuple ? affix.items.some(matches) : matches(affix!);
  };
}
method('startswith', 'prefix start? end? /', startsOrEnds('startswith'));
method('endswith', 'suffix start? end? /', startsOrEnds('endswith'));
method('removeprefix', 'prefix /', (state, self, [prefix]) => {
  const part = text(prefix, 'removeprefix() argument');
  return state.made(self.startsWith(part) ? self.slice(part.length) : self);
});
method('removesuffix', 'suffix /', (state, self, [suffix]) => {
  const part = text(suffix, 'removesuffix() argument');
  return state.made(part !== '' && self.endsWith(part) ? self.slice(0, -part.length) : self);
});

function finder(fromRight: boolean, isStrict: boolean): Body {
  return (_state, self, [part, start, end]) => {
    const window = search.windowOf(self, bound(start), bound(end));
    const at = window === null ? -1 : search.find(window, text(part, 'sub'), fromRight);
    if (at < 0 && isStrict) return valueError('substring not found');
    return at;
  };
}
method('find', 'sub start? end? /', finder(false, false));
method('rfind', 'sub start? end? /', finder(true, false));
method('index', 'sub start? end? /', finder(false, true));
method('rindex', 'sub start? end? /', finder(true, true));
method('count', 'sub start? end? /', (_state, self, [part, start, end]) => {
  const window = search.windowOf(self, bound(start), bound(end));
  return window === null ? 0 : search.count(window, text(part, 'sub'));
});
method('replace', 'old new count? /', (state, self, [old, replacement, limit], isMarkup) => {
  const inserted = isMarkup
    ? escapeValue(state, replacement!).text
    : text(replacement, 'replace() argument 2');
  return search.replace(
    state,
    self,
    text(old, 'replace() argument 1'),
    inserted,
    limit === undefined ? -1 : countOf(limit),
  );
});
method('join', 'iterable /', (state, self, [items], isMarkup) => {
  const parts: string[] = [];
  let length = 0;
  for (const item of iterate(state, items!)) {
    state.step();
    const part = isMarkup ? escapeValue(state, item).text : textOf(item);
    if (part === undefined)
      return typeError(`sequence item ${parts.length}: expected str instance, ${typeName(item)} found`);
    parts.push(part);
    length += part.length + self.length;
    if (length > state.limits.maxValueCharacters + self.length) state.reserve(length);
  }
  return state.made(parts.join(self));
});

function justify(place: (missing: number, width: number) => number): Body {
  return (state, self, [width, fill], isMarkup) => {
    const wanted = countOf(width!);
    const filler =
      fill === undefined ? ' ' : isMarkup ? escapeValue(state, fill).text : text(fill, 'the fill character');
    if (unicode.codePointLength(filler) !== 1)
      typeError('The fill character must be exactly one character long');
    const missing = wanted - unicode.codePointLength(self);
    if (missing <= 0) return state.made(self);
    state.reserve(self.length + missing * filler.length);
    const left = place(missing, wanted);
    return filler.repeat(left) + self + filler.repeat(missing - left);
  };
}
const justified: Readonly<Record<string, (missing: number, width: number) => number>> = {
  ljust: () => 0,
  rjust: (missing) => missing,
  center: (missing, width) => (missing >> 1) + (missing & width & 1),
};
for (const [name, place] of Object.entries(justified)) method(name, 'width fillchar? /', justify(place));
method('zfill', 'width /', (state, self, [width]) => {
  const missing = countOf(width!) - unicode.codePointLength(self);
  if (missing <= 0) return state.made(self);
  state.reserve(self.length + missing);
  const sign = /^[+-]/.test(self) ? self[0]! : '';
  return sign + '0'.repeat(missing) + self.slice(sign.length);
});
method('expandtabs', 'tabsize?', (state, self, [tabsize]) => {
  const size = tabsize === undefined ? 8 : countOf(tabsize);
  state.work(self.length >> 2);
  let result = '';
  let column = 0;
  for (const char of self) {
    if (char === '\t') {
      const blanks = size > 0 ? size - (column % size) : 0;
      if (blanks > 64) state.reserve(blanks);
      result += ' '.repeat(blanks);
      column += blanks;
      if (result.length > state.limits.maxValueCharacters) state.reserve(result.length);
    } else {
      result += char;
      column = char === '\n' || char === '\r' ? 0 : column + 1;
    }
  }
  return state.made(result);
});

/** Method name -> patterns. The method returns true if the text consists of one kind of characters. */
const KINDS: Readonly<Record<string, readonly RegExp[]>> = {
  isalpha: [/^\p{L}+$/u],
  isdecimal: [/^\p{Nd}+$/u],
  isdigit: [new RegExp(`^[\\p{Nd}${unicode.OTHER_DIGITS}]+$`, 'u')],
  isnumeric: [new RegExp(`^[\\p{N}${unicode.NUMBER_SIGNS}]+$`, 'u')],
  isalnum: [new RegExp(`^[\\p{L}\\p{N}${unicode.OTHER_DIGITS}]+$`, 'u')],
  isspace: [new RegExp(`^[${unicode.WHITESPACE}]+$`)],
  isascii: [/^[\0-\x7f]*$/],
  islower: [/\p{Lowercase}/u, /^[^\p{Uppercase}\p{Lt}]*$/u],
  isupper: [/\p{Uppercase}/u, /^[^\p{Lowercase}\p{Lt}]*$/u],
};
for (const [name, patterns] of Object.entries(KINDS))
  method(name, '', (state, self) => {
    state.work(self.length >> 2);
    return patterns.every((pattern) => pattern.test(self));
  });
method('istitle', '', (state, self) => {
  state.work(self.length >> 1);
  return /[\p{Lowercase}\p{Uppercase}\p{Lt}]/u.test(self) && unicode.titleText(self) === self;
});

method('translate', 'table /', (state, self, [table]) => {
  if (!(table instanceof Dict)) return typeError(`'${typeName(table!)}' object is not subscriptable`);
  let result = '';
  for (const char of self) {
    state.step();
    const target = table.get(char.codePointAt(0)!);
    if (target === undefined) result += char;
    else if (target !== null) {
      const code = intOf(target);
      if (code !== undefined && (code < 0 || code > 0x10ffff))
        valueError('character mapping must be in range(0x110000)');
      result += code === undefined ? text(target, 'character mapping') : String.fromCodePoint(Number(code));
    }
    if (result.length > state.limits.maxValueCharacters) state.reserve(result.length);
  }
  return state.made(result);
});
