/** Markup -> plain text: striptags and unescape. */
import type { RenderState } from '../render-state.ts';
import { splitSpaces } from './str-search.ts';

/** Named entities that escaped text and common HTML use. */
const ENTITIES: ReadonlyMap<string, string> = new Map(
  (
    'amp & lt < gt > quot " apos \' nbsp \u00a0 copy © reg ® trade ™ laquo « raquo » ndash – mdash — ' +
    'lsquo ‘ rsquo ’ ldquo “ rdquo ” bull • hellip … euro € middot · times ×'
  )
    .match(/[^ ]+ [^ ]/gu)!
    .map((pair) => pair.split(' ') as [string, string]),
);

/** Removes the text between two marks, from the left, in one pass. */
function removeBetween(text: string, open: string, close: string): string {
  let result = '';
  let at = 0;
  for (;;) {
    const start = text.indexOf(open, at);
    const end = start < 0 ? -1 : text.indexOf(close, start);
    if (end < 0) return result + text.slice(at);
    result += text.slice(at, start);
    at = end + close.length;
  }
}

/** Text without comments and tags, whitespace collapsed, entities resolved. */
export function stripTags(state: RenderState, text: string): string {
  state.reserve(text.length);
  const bare = removeBetween(removeBetween(text, '<!--', '-->'), '<', '>');
  return state.made(resolveEntities(splitSpaces(state, bare, -1).join(' ')));
}

function resolveEntities(text: string): string {
  return text.replace(
    /&(?:#(\d{1,7});?|#[xX]([0-9a-fA-F]{1,6});?|([A-Za-z]{2,8});)/g,
    (whole, decimal, hex, name) => {
      if (name !== undefined) return ENTITIES.get(name) ?? whole;
      const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
      if (code === 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return '\ufffd';
      return String.fromCodePoint(code);
    },
  );
}
