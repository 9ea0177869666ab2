/** Markdown as it grows -> elements. HTML in it is shown as text: nothing that a model writes is ever read as HTML. */
import { lexer, type MarkedToken, type Token, type Tokens } from 'marked';
import { copyButton, make } from './elements.ts';
import { highlight } from './highlight.ts';

/** A text that grows, in an element. Blocks that stay the same keep their elements, so that a selection in them stays. */
export class Markdown {
  readonly element = make('div', { className: 'chat-markdown' });
  #text = '';
  #shown: readonly string[] = [];

  show(text: string): void {
    if (text === this.#text) return;
    this.#text = text;
    const blocks = lexer(text, { gfm: true, breaks: true }).filter(({ type }) => !EMPTY.has(type));
    const changed = blocks.findIndex(({ raw }, i) => raw !== this.#shown[i]);
    const first = changed < 0 ? blocks.length : changed;
    while (this.element.children.length > first) this.element.lastChild!.remove();
    this.element.append(...blocks.slice(first).map(blockOf));
    this.#shown = blocks.map(({ raw }) => raw);
  }
}

/** Blocks that show nothing. */
const EMPTY = new Set(['space', 'def']);

function blockOf(token: Token): HTMLElement {
  const block = token as MarkedToken;
  switch (block.type) {
    case 'heading':
      return make(`h${Math.min(block.depth + 1, 6) as 2 | 3 | 4 | 5 | 6}`, {}, ...inline(block.tokens));
    case 'code':
      return codeBlock(block);
    case 'blockquote':
      return make('blockquote', {}, ...blocksOf(block.tokens));
    case 'list':
      return list(block);
    case 'table':
      return table(block);
    case 'hr':
      return make('hr');
    case 'paragraph':
    case 'text':
      return make('p', {}, ...inline(block.tokens ?? [block]));
    default:
      return make('p', { className: 'chat-raw' }, block.raw.trimEnd());
  }
}

function blocksOf(tokens: readonly Token[]): HTMLElement[] {
  return tokens.filter(({ type }) => !EMPTY.has(type)).map(blockOf);
}

function codeBlock({ lang = '', text }: Tokens.Code): HTMLElement {
  const language = lang.split(/\s/)[0]!;
  const head = make('div', {}, make('span', {}, language), ...copyButton('Copy the code', () => text));
  const code = make('code', {}, ...highlight(text, language));
  return make('div', { className: 'chat-code' }, head, make('pre', { tabIndex: 0 }, code));
}

function list({ ordered, start, items, loose }: Tokens.List): HTMLElement {
  const element = ordered ? make('ol', { start: Number(start) || 1 }) : make('ul');
  for (const { tokens, task, checked = false } of items) {
    const box = task ? [make('input', { type: 'checkbox', checked, disabled: true }), ' '] : [];
    const content = tokens.flatMap((token) => {
      if (token.type === 'checkbox') return [];
      return token.type === 'text' && !loose
        ? inline((token as Tokens.Text).tokens ?? [token])
        : blocksOf([token]);
    });
    element.append(make('li', { className: task ? 'chat-task' : '' }, ...box, ...content));
  }
  return element;
}

function table({ header, rows }: Tokens.Table): HTMLElement {
  const rowOf = (cells: readonly Tokens.TableCell[]) =>
    make(
      'tr',
      {},
      ...cells.map(({ tokens, align, header: isHead }) => {
        const cell = make(isHead ? 'th' : 'td', {}, ...inline(tokens));
        if (align) cell.style.textAlign = align;
        return cell;
      }),
    );
  const body = make('tbody', {}, ...rows.map(rowOf));
  const element = make('table', {}, make('thead', {}, rowOf(header)), body);
  return make('div', { className: 'chat-table', tabIndex: 0 }, element);
}

function inline(tokens: readonly Token[]): (Node | string)[] {
  return tokens.map((token) => {
    const part = token as MarkedToken;
    switch (part.type) {
      case 'strong':
      case 'em':
      case 'del':
        return make(part.type, {}, ...inline(part.tokens));
      case 'codespan':
        return make('code', {}, part.text);
      case 'br':
        return make('br');
      case 'link':
        return link(part.href, inline(part.tokens));
      case 'image':
        return link(part.href, [part.text || part.href]); // an image would tell its server who reads it, and when
      case 'escape':
        return part.text;
      case 'text':
        return part.tokens ? make('span', {}, ...inline(part.tokens)) : decoded(part.text);
      case 'html':
        return /^<br\s*\/?>$/i.test(part.raw) ? make('br') : part.raw;
      default:
        return part.raw;
    }
  });
}

/** Schemes of links that may be followed. */
const SCHEMES = ['http:', 'https:', 'mailto:'];

function link(href: string, content: readonly (Node | string)[]): HTMLElement {
  const url = URL.canParse(href) ? new URL(href) : null;
  if (!url || !SCHEMES.includes(url.protocol)) return make('span', {}, ...content);
  return make(
    'a',
    { href: url.href, target: '_blank', rel: 'noopener noreferrer', title: url.href },
    ...content,
  );
}

const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00a0',
};
const HIGHEST_CODE_POINT = 0x10ffff;

/** Returns a text with the usual references to characters, such as `&lt;`, replaced by them. Others stay as they are. */
function decoded(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]{2,4}));/gi, (whole, decimal, hex, name) => {
    if (name) return ENTITIES[name] ?? whole;
    const code = decimal ? Number(decimal) : Number.parseInt(hex, 16);
    return code > 0 && code <= HIGHEST_CODE_POINT ? String.fromCodePoint(code) : whole;
  });
}
