// V8's Unicode property data -> native/regex/unicode-tables.h. Run by hand when the Unicode version should move.
import fs from 'node:fs';

const categories =
  'L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp C Cc Cf Co Cn'.split(
    ' ',
  );
const binary = 'Alphabetic White_Space Uppercase Lowercase Emoji ID_Start ID_Continue'.split(' ');
const scripts =
  'Latin Greek Cyrillic Han Hiragana Katakana Hangul Arabic Hebrew Thai Devanagari Bengali Tamil Armenian Georgian Common'.split(
    ' ',
  );

function ranges(test) {
  const result = [];
  for (let code = 0; code <= 0x10ffff; code++) {
    if (code === 0xd800) code = 0xe000;
    if (!test(String.fromCodePoint(code))) continue;
    const last = result.at(-1);
    if (last && last[1] === code - 1) last[1] = code;
    else result.push([code, code]);
  }
  return result;
}

const entries = [
  ...categories.map((name) => [name, new RegExp(`^\\p{${name}}$`, 'u')]),
  ...binary.map((name) => [name, new RegExp(`^\\p{${name}}$`, 'u')]),
  ...scripts.map((name) => [`Script=${name}`, new RegExp(`^\\p{Script=${name}}$`, 'u')]),
];
/** Properties made of others and few ranges more. `^`: every code point but those. */
const parts = {
  L: 'Lu Ll Lt Lm Lo',
  M: 'Mn Mc Me',
  N: 'Nd Nl No',
  P: 'Pc Pd Ps Pe Pi Pf Po',
  S: 'Sm Sc Sk So',
  Z: 'Zs Zl Zp',
  Cn: '^L M N P S Z Cc Cf Co',
  C: '^L M N P S Z',
  Alphabetic: 'L Nl',
  Uppercase: 'Lu',
  Lowercase: 'Ll',
  ID_Start: 'Lu Ll Lt Lo Nl',
  ID_Continue: 'ID_Start Mn Mc Nd Pc',
};
const longNames = {
  Letter: 'L',
  Uppercase_Letter: 'Lu',
  Lowercase_Letter: 'Ll',
  Titlecase_Letter: 'Lt',
  Modifier_Letter: 'Lm',
  Other_Letter: 'Lo',
  Mark: 'M',
  Combining_Mark: 'M',
  Nonspacing_Mark: 'Mn',
  Spacing_Mark: 'Mc',
  Enclosing_Mark: 'Me',
  Number: 'N',
  Decimal_Number: 'Nd',
  digit: 'Nd',
  Letter_Number: 'Nl',
  Other_Number: 'No',
  Punctuation: 'P',
  punct: 'P',
  Connector_Punctuation: 'Pc',
  Dash_Punctuation: 'Pd',
  Open_Punctuation: 'Ps',
  Close_Punctuation: 'Pe',
  Initial_Punctuation: 'Pi',
  Final_Punctuation: 'Pf',
  Other_Punctuation: 'Po',
  Symbol: 'S',
  Math_Symbol: 'Sm',
  Currency_Symbol: 'Sc',
  Modifier_Symbol: 'Sk',
  Other_Symbol: 'So',
  Separator: 'Z',
  Space_Separator: 'Zs',
  Line_Separator: 'Zl',
  Paragraph_Separator: 'Zp',
  Other: 'C',
  Control: 'Cc',
  cntrl: 'Cc',
  Format: 'Cf',
  Private_Use: 'Co',
  Unassigned: 'Cn',
  Alpha: 'Alphabetic',
  Upper: 'Uppercase',
  Lower: 'Lowercase',
  space: 'White_Space',
}; // prettier-ignore

let text = `// Unicode properties as sorted ranges of code points. Made by scripts/make-unicode-tables.mjs from Unicode ${process.versions.unicode}.
#pragma once
#include <cstdint>

namespace onpolicy::grammar {

struct UnicodeProperty {
  const char* name;
  uint32_t begin, end;  // in kUnicodeRanges
  const char* parts;    // names of properties that belong to it, between spaces; ^ before them: all is inverted
};
struct UnicodeAlias {
  const char* name;
  const char* property;
};
struct UnicodeRange {
  uint32_t low, high;
};
struct CaseRun {
  uint32_t from, to, count, stride;  // from + i * stride and to + i * stride differ only in case, for i < count
};

`;
const SURROGATES = [0xd800, 0xdfff];
const all = [];
const properties = [];
for (const [name, expression] of entries) {
  const begin = all.length;
  const made = parts[name] ?? '';
  const others = made.replace('^', '').split(' ').filter(Boolean);
  const isPart = (character) => others.some((other) => new RegExp(`^\\p{${other}}$`, 'u').test(character));
  if (made.startsWith('^')) {
    const wrong = ranges((character) => expression.test(character) === isPart(character));
    if (wrong.length > 0) throw new Error(`${name} is not the rest of ${made}`);
    all.push(SURROGATES);
  } else {
    if (ranges((character) => isPart(character) && !expression.test(character)).length > 0)
      throw new Error(`${name} does not hold ${made}`);
    all.push(...ranges((character) => expression.test(character) && !isPart(character)));
  }
  properties.push(`    {"${name}", ${begin}, ${all.length}, "${made}"},`);
}
const runs = [];
for (let code = 0x41; code <= 0x1ffff; code++) {
  if (code === 0xd800) code = 0xe000;
  const lower = String.fromCodePoint(code).toLowerCase();
  if (lower === String.fromCodePoint(code) || [...lower].length !== 1) continue;
  const [from, to] = [code, lower.codePointAt(0)];
  const run = runs.at(-1);
  const stride = run ? from - (run.from + (run.count - 1) * run.stride) : 0;
  const fits = run && to - (run.to + (run.count - 1) * run.stride) === stride && stride <= 2;
  if (fits && (run.count === 1 || run.stride === stride))
    Object.assign(run, { count: run.count + 1, stride });
  else runs.push({ from, to, count: 1, stride: 0 });
}
const wrap = (items) =>
  items.reduce((lines, item, i) => lines + item + (i % 12 === 11 ? ',\n    ' : ', '), '    ');
text += `inline constexpr UnicodeRange kUnicodeRanges[] = {\n${wrap(all.map(([low, high]) => `{${low}, ${high}}`))}\n};\n\n`;
text += `inline constexpr UnicodeProperty kUnicodeProperties[] = {\n${properties.join('\n')}\n};\n\n`;
text += `inline constexpr UnicodeAlias kUnicodeAliases[] = {\n${Object.entries(longNames)
  .map(([name, property]) => `    {"${name}", "${property}"},`)
  .join('\n')}\n};\n\n`;
text += `inline constexpr CaseRun kCaseRuns[] = {\n${wrap(runs.map(({ from, to, count, stride }) => `{${from}, ${to}, ${count}, ${stride}}`))}\n};\n\n}  // namespace onpolicy::grammar\n`;
fs.writeFileSync(new URL('../native/regex/unicode-tables.h', import.meta.url), text);
