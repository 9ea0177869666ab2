/** A text -> the result of a filter: case, trimming, replacing, layout, escaping. */

import { truth } from '../python/compare.ts';
import { formatPercent } from '../python/format-percent.ts';
import { iterate, length, tryIterate, unpack } from '../python/iterate.ts';
import { stripTags } from '../python/methods/markup-methods.ts';
import { STR_METHODS } from '../python/methods/str-methods.ts';
import { splitLines } from '../python/methods/str-search.ts';
import { countOf } from '../python/numbers.ts';
import { add, operate } from '../python/operators.ts';
import { typeError, valueError } from '../python/py-error.ts';
import type { RenderState } from '../python/render-state.ts';
import { getSlice } from '../python/slices.ts';
import { Table } from '../python/table.ts';
import { escapeHtml, escapeValue, replaceEach, toText } from '../python/text.ts';
import { WHITESPACE } from '../python/unicode.ts';
import { Dict, Markup, Tuple, textOf, typeName, Undefined, type Value } from '../python/values.ts';
import { toJson } from './to-json.ts';

export const TEXT_FILTERS = new Table();

/** soft_str: text and Markup unchanged, str() of other values. */
function softText(state: RenderState, value: Value): string | Markup {
  return typeof value === 'string' || value instanceof Markup ? value : toText(state, value);
}

function strMethod(state: RenderState, value: Value, name: string, args: readonly Value[] = []): Value {
  return STR_METHODS.get(name)!(state, softText(state, value), args, null);
}

for (const name of ['upper', 'lower', 'capitalize'])
  TEXT_FILTERS.add(name, '', (state, value) => strMethod(state, value, name));
TEXT_FILTERS.add('string', '', (state, value) => softText(state, value));
TEXT_FILTERS.add('trim', 'chars?', (state, value, [chars]) =>
  strMethod(state, value, 'strip', [chars ?? null]),
);
TEXT_FILTERS.add('center', 'width?', (state, value, [width]) =>
  strMethod(state, value, 'center', [width === undefined ? 80 : width]),
);

/** Matches a word for the filter `title`. */
const TITLE_WORD = new RegExp(`[^${WHITESPACE}({[<\\-]+`, 'g');
TEXT_FILTERS.add('title', '', (state, value) =>
  replaceEach(state, toText(state, value), TITLE_WORD, ([word]) => {
    const [first = ''] = word;
    return first.toUpperCase() + word.slice(first.length).toLowerCase();
  }),
);

TEXT_FILTERS.add('replace', 'old new count?', (state, value, [old, replacement, count]) => {
  const limit = count === undefined || count === null ? [] : [count];
  const texts = [toText(state, old!), toText(state, replacement!)];
  return strMethod(state, toText(state, value), 'replace', [...texts, ...limit]);
});

TEXT_FILTERS.add('e escape', '', (state, value) => escapeValue(state, value));
TEXT_FILTERS.add('forceescape', '', (state, value) => new Markup(escapeHtml(state, toText(state, value))));
TEXT_FILTERS.add('safe', '', (state, value) =>
  value instanceof Markup ? value : new Markup(toText(state, value)),
);
TEXT_FILTERS.add('striptags', '', (state, value) => stripTags(state, toText(state, value)));

TEXT_FILTERS.set('format', (state, value, args, keywords) => {
  if (args.length > 0 && keywords !== null)
    return typeError("can't handle positional and keyword arguments at the same time");
  return formatPercent(
    state,
    softText(state, value),
    keywords === null ? new Tuple(args) : Dict.from(keywords),
  );
});

TEXT_FILTERS.add('indent', 'width? first? blank?', (state, value, [width, first, blank]) => {
  const isMarkup = value instanceof Markup;
  const given = width === undefined ? ' '.repeat(4) : textOf(width);
  const indentText = given ?? (operate(state, '*', ' ', width!) as string);
  // Markup would escape a plain indentation, so the filter converts it to Markup first.
  const text = textOf(add(state, value, isMarkup ? new Markup('\n') : '\n'));
  if (text === undefined) return typeError(`'${typeName(value)}' object has no attribute 'splitlines'`);
  const lines = splitLines(state, text, false);
  state.reserve(text.length + (lines.length + 1) * indentText.length);
  const keepBlank = blank !== undefined && truth(state, blank);
  const [head, ...rest] = lines;
  let result = head ?? '';
  for (const line of rest) result += `\n${line !== '' || keepBlank ? indentText : ''}${line}`;
  if (first !== undefined && truth(state, first)) result = indentText + result;
  return isMarkup ? new Markup(result) : result;
});

TEXT_FILTERS.add(
  'truncate',
  'length? killwords? end? leeway?',
  (state, value, [limit, killWords, end, leeway]) => {
    const ending = end === undefined ? '...' : end;
    const endLength = length(state, ending);
    const wanted = limit === undefined ? 255 : countOf(limit);
    const slack = leeway === undefined || leeway === null ? 5 : countOf(leeway);
    if (wanted < endLength) valueError(`expected length >= ${endLength}, got ${wanted}`);
    if (slack < 0) valueError(`expected leeway >= 0, got ${slack}`);
    if (length(state, value) <= wanted + slack) return value;
    const cut = getSlice(state, value, null, wanted - endLength, null);
    if (killWords !== undefined && truth(state, killWords)) return add(state, cut, ending);
    const words = strMethod(state, cut, 'rsplit', [' ', 1]) as readonly Value[];
    return add(state, words[0]!, ending);
  },
);

TEXT_FILTERS.add('wordcount', '', (state, value) => {
  const text = toText(state, value);
  state.scan(text.length * 8);
  return text.match(/[\p{L}\p{N}_]+/gu)?.length ?? 0;
});

/** Percent-encodes all bytes except unreserved ones. `/` is encoded only in query strings. */
function quoteUrl(state: RenderState, value: Value, isQuery: boolean): string {
  const text = toText(state, value);
  state.reserve(text.length * 3);
  state.work(text.length >> 2);
  const wellFormed = text.replace(/[\ud800-\udfff]/gu, '\ufffd'); // with u: lone surrogates only
  const quoted = encodeURIComponent(wellFormed).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return isQuery ? quoted.replaceAll('%20', '+') : quoted.replaceAll('%2F', '/');
}

TEXT_FILTERS.add('urlencode', '', (state, value) => {
  const items = textOf(value) === undefined ? tryIterate(state, value) : undefined;
  if (items === undefined) return quoteUrl(state, value, false);
  const pairs = value instanceof Dict ? value.entries() : iterate(state, value);
  const parts: string[] = [];
  for (const pair of pairs) {
    const [key, item] = unpack(state, pair as Value, 2);
    parts.push(`${quoteUrl(state, key!, true)}=${quoteUrl(state, item!, true)}`);
  }
  return state.made(parts.join('&'));
});

TEXT_FILTERS.add('xmlattr', 'autospace?', (state, value, [autospace]) => {
  if (value instanceof Undefined) value.fail();
  if (!(value instanceof Dict)) return typeError(`'${typeName(value)}' object has no attribute 'items'`);
  const parts: string[] = [];
  for (const [key, item] of value.entries()) {
    if (item === null || item instanceof Undefined) continue;
    const name = textOf(key);
    if (name === undefined) return typeError(`expected string or bytes-like object, got '${typeName(key)}'`);
    if (/[ \t\n\r\f\v/>=]/.test(name)) valueError(`Invalid character in attribute name: '${name}'`);
    parts.push(`${escapeValue(state, key).text}="${escapeValue(state, item).text}"`);
  }
  const text = parts.join(' ');
  const space = text !== '' && (autospace === undefined || truth(state, autospace)) ? ' ' : '';
  return state.made(space + text);
});

TEXT_FILTERS.add('tojson', 'ensure_ascii? indent? separators? sort_keys?', toJson);
