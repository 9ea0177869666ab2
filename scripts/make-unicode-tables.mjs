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
};
struct UnicodeAlias {
  const char* name;
  const char* property;
};
struct UnicodeRange {
  uint32_t low, high;
};
struct CasePair {
  uint32_t from, to;  // the two differ only in case
};

`;
const all = [];
const properties = [];
for (const [name, expression] of entries) {
  const begin = all.length;
  all.push(...ranges((character) => expression.test(character)));
  properties.push(`  {"${name}", ${begin}, ${all.length}},`);
}
const pairs = [];
for (let code = 0x41; code <= 0x1ffff; code++) {
  if (code === 0xd800) code = 0xe000;
  const character = String.fromCodePoint(code);
  const lower = character.toLowerCase();
  if (lower !== character && [...lower].length === 1) pairs.push([code, lower.codePointAt(0)]);
}
const wrap = (items) =>
  items.reduce((lines, item, i) => lines + item + (i % 12 === 11 ? ',\n    ' : ', '), '    ');
text += `inline constexpr UnicodeRange kUnicodeRanges[] = {\n${wrap(all.map(([low, high]) => `{${low}, ${high}}`))}\n};\n\n`;
text += `inline constexpr UnicodeProperty kUnicodeProperties[] = {\n${properties.join('\n')}\n};\n\n`;
text += `inline constexpr UnicodeAlias kUnicodeAliases[] = {\n${Object.entries(longNames)
  .map(([name, property]) => `    {"${name}", "${property}"},`)
  .join('\n')}\n};\n\n`;
text += `inline constexpr CasePair kCasePairs[] = {\n${wrap(pairs.map(([from, to]) => `{${from}, ${to}}`))}\n};\n\n}  // namespace onpolicy::grammar\n`;
fs.writeFileSync(new URL('../native/regex/unicode-tables.h', import.meta.url), text);
