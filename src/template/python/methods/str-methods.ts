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

/** Text as Markup, also inside a list or tuple. */
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

function limitOf(value: Value | undefined): number {
  return value === undefined ? -1 : countOf(value);
}

method('upper', '', (state, self) => state.made(self.toUpperCase()));
method('lower', '', (state, self) => state.made(self.toLowerCase()));
method('capitalize', '', (state, self) => state.made(unicode.capitalize(self)));

/** A change of each character by itself. */
function byCharacter(change: (self: string) => string): Body {
  return (state, self) => {
    state.work(self.length >> 1);
    return state.made(change(self));
  };
}
method('title', '', byCharacter(unicode.titleText));
method('swapcase', '', byCharacter(unicode.swapCase));
method('casefold', '', byCharacter(unicode.casefold));

function strip(left: boolean, right: boolean): Body {
  return (state, self, [characters]) => {
    if (characters === undefined || characters === null)
      return state.made(search.stripSpaces(self, left, right));
    return state.made(search.stripCharacters(self, text(characters, 'strip arg'), left, right));
  };
}
method('strip', 'chars? /', strip(true, true));
method('lstrip', 'chars? /', strip(true, false));
method('rstrip', 'chars? /', strip(false, true));

method('split', 'sep? maxsplit?', (state, self, [separator, limit]) => {
  state.reserve(self.length);
  return separator === undefined || separator === null
    ? search.splitSpaces(state, self, limitOf(limit))
    : search.splitBy(state, self, text(separator, 'sep'), limitOf(limit));
});
method('rsplit', 'sep? maxsplit?', (state, self, [separator, limit]) => {
  state.reserve(self.length);
  return separator === undefined || separator === null
    ? search.splitSpacesFromRight(state, self, limitOf(limit))
    : search.splitByFromRight(state, self, text(separator, 'sep'), limitOf(limit));
});
method('splitlines', 'keepends?', (state, self, [keepEnds]) => {
  state.reserve(self.length);
  return search.splitLines(state, self, keepEnds !== undefined && truth(state, keepEnds));
});
method('partition', 'sep /', (state, self, [separator]) => {
  const part = text(separator, 'sep');
  if (part === '') valueError('empty separator');
  const at = self.indexOf(part);
  state.reserve(self.length);
  if (at < 0) return new Tuple([self, '', '']);
  return new Tuple([self.slice(0, at), part, self.slice(at + part.length)]);
});
method('rpartition', 'sep /', (state, self, [separator]) => {
  const part = text(separator, 'sep');
  if (part === '') valueError('empty separator');
  const at = self.lastIndexOf(part);
  state.reserve(self.length);
  if (at < 0) return new Tuple(['', '', self]);
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
      const part = self.slice(window.from, window.to);
      return name === 'startswith' ? part.startsWith(candidate) : part.endsWith(candidate);
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
  return search.replace(state, self, text(old, 'replace() argument 1'), inserted, limitOf(limit));
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

function every(test: (char: string) => boolean): Body {
  return (state, self) => {
    state.work(self.length >> 2);
    if (self === '') return false;
    for (const char of self) if (!test(char)) return false;
    return true;
  };
}
method('isalpha', '', every(unicode.isLetter));
method('isdecimal', '', every(unicode.isDecimal));
method('isdigit', '', every(unicode.isDigit));
method('isnumeric', '', every(unicode.isNumeric));
const isAlphanumeric = (char: string): boolean =>
  unicode.isLetter(char) || unicode.isNumeric(char) || unicode.isDigit(char);
method('isalnum', '', every(isAlphanumeric));
method('isspace', '', (_state, self) => self !== '' && search.stripSpaces(self, true, false) === '');
method('isascii', '', (_state, self) => !/[\u0080-\uffff]/.test(self));

/** islower, isupper: at least one cased character and none of the other case. */
function hasOnlyCase(test: (char: string) => boolean, other: (char: string) => boolean): Body {
  return (state, self) => {
    state.work(self.length >> 2);
    let found = false;
    for (const char of self) {
      if (other(char) || unicode.isTitle(char)) return false;
      found ||= test(char);
    }
    return found;
  };
}
method('islower', '', hasOnlyCase(unicode.isLower, unicode.isUpper));
method('isupper', '', hasOnlyCase(unicode.isUpper, unicode.isLower));
method('istitle', '', (state, self) => {
  state.work(self.length >> 2);
  let found = false;
  let previousIsCased = false;
  for (const char of self) {
    if (unicode.isUpper(char) || unicode.isTitle(char)) {
      if (previousIsCased) return false;
      previousIsCased = true;
      found = true;
    } else if (unicode.isLower(char)) {
      if (!previousIsCased) return false;
      found = true;
    } else previousIsCased = false;
  }
  return found;
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
