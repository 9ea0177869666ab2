/** Escaped text -> the text with web and mail addresses as links. */
import { PyError } from '../python/py-error.ts';
import type { RenderState } from '../python/render-state.ts';
import { escapeHtml } from '../python/text.ts';

/** Arguments of the filter. */
export type LinkOptions = {
  readonly trimLimit: number | null;
  readonly noFollow: boolean;
  readonly target: string;
  readonly rel: string;
  readonly extraSchemes: readonly string[];
};

/** Longer words are not matched, which bounds the cost of the patterns. */
const MAX_ADDRESS_UNITS = 1024;

const WEB_ADDRESS = new RegExp(
  '^(?:(?:https?://|www\\.)(?:(?:[\\p{L}\\p{N}_%-]+\\.)+)?(?:[a-z]{2,63}|xn--[\\p{L}\\p{N}_%]{2,59})' +
    '|(?:[\\p{L}\\p{N}_%-]{2,63}\\.)+(?:com|net|int|edu|gov|org|info|mil)' +
    '|https?://(?:\\p{Nd}{1,3}(?:\\.\\p{Nd}{1,3}){3}|\\[(?:[\\p{Nd}a-f]{0,4}:){2}(?:[\\p{Nd}a-f]{0,4}:?){1,6}\\]))' +
    '(?::\\p{Nd}{1,5})?(?:[/?#]\\S*)?$',
  'iu',
);
const MAIL_ADDRESS = /^\S+@[\p{L}\p{N}_][\p{L}\p{N}_.-]*\.[\p{L}\p{N}_]+$/u;

/** Turns addresses into links. */
export function linkUrls(state: RenderState, text: string, options: LinkOptions): string {
  for (const scheme of options.extraSchemes)
    if (!/^[\p{L}\p{N}_.+-]{2,}:\/{0,2}$/u.test(scheme))
      throw new PyError('ValueError', `'${scheme}' is not a valid URI scheme prefix.`);
  const rel = new Set([...options.rel.split(/\s+/), ...(options.noFollow ? ['nofollow'] : []), 'noopener']);
  rel.delete('');
  const attributes =
    ` rel="${escapeHtml(state, [...rel].sort().join(' '))}"` +
    (options.target === '' ? '' : ` target="${escapeHtml(state, options.target)}"`);
  const words = text.split(/(\s+)/).map((word) => {
    // The patterns can backtrack from each character of a word.
    state.work(1 + ((word.length * Math.min(word.length, MAX_ADDRESS_UNITS)) >> 5));
    return linkWord(word, attributes, options);
  });
  return state.made(words.join(''));
}

function linkWord(word: string, attributes: string, options: LinkOptions): string {
  if (word.length > MAX_ADDRESS_UNITS) return word;
  const head = /^(?:[(<]|&lt;)*/.exec(word)![0];
  const tail = /(?:[)>.,\n]|&gt;)*$/.exec(word.slice(head.length))![0];
  const [middle, rest] = balance(word.slice(head.length, word.length - tail.length), tail);
  return head + link(middle, attributes, options) + rest;
}

/** Moves closing brackets back into an address that has opening ones. */
function balance(address: string, trailing: string): [address: string, trailing: string] {
  let middle = address;
  let tail = trailing;
  const count = (text: string, part: string): number => text.split(part).length - 1;
  for (const [open, close] of [
    ['(', ')'],
    ['<', '>'],
    ['&lt;', '&gt;'],
  ] as const) {
    const opened = count(middle, open);
    if (opened <= count(middle, close)) continue;
    for (let i = Math.min(opened, count(tail, close)); i > 0; i--) {
      const end = tail.indexOf(close) + close.length;
      middle += tail.slice(0, end);
      tail = tail.slice(end);
    }
  }
  return [middle, tail];
}

function link(address: string, attributes: string, options: LinkOptions): string {
  const { trimLimit } = options;
  const shown =
    trimLimit !== null && address.length > trimLimit ? `${address.slice(0, trimLimit)}...` : address;
  if (WEB_ADDRESS.test(address)) {
    const target = /^https?:\/\//.test(address) ? address : `https://${address}`;
    return `<a href="${target}"${attributes}>${shown}</a>`;
  }
  if (address.startsWith('mailto:') && MAIL_ADDRESS.test(address.slice(7)))
    return `<a href="${address}">${address.slice(7)}</a>`;
  if (!/^(?:www\.|@)|:/.test(address) && MAIL_ADDRESS.test(address))
    return `<a href="mailto:${address}">${address}</a>`;
  const scheme = options.extraSchemes.find((prefix) => address !== prefix && address.startsWith(prefix));
  return scheme === undefined ? address : `<a href="${address}"${attributes}>${address}</a>`;
}
