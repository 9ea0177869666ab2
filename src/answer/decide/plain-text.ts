/** Texts of a caller -> the same without the texts of control tokens, so that an input cannot forge a turn of the conversation. */
import type { Tokenizer } from '../../engine/tokenizer/index.ts';
import type { ChatMessage } from '../../protocol/index.ts';
import type { PlacedPart } from '../arrange-messages.ts';

/** A character without width that is part of no control token. */
const WORD_JOINER = '\u2060';

const patterns = new WeakMap<Tokenizer, RegExp>();

/** Inserts a word joiner behind the first character of each control token's text. */
export function withoutControls(text: string, tokenizer: Tokenizer): string {
  return text.replace(controlPattern(tokenizer), (control) => {
    const [first = ''] = control;
    return `${first}${WORD_JOINER}${control.slice(first.length)}`;
  });
}

/** Applies {@link withoutControls} to the texts of all parts. */
export function plainParts<Part extends PlacedPart>(parts: readonly Part[], tokenizer: Tokenizer): Part[] {
  return parts.map((part) =>
    part.type === 'text' ? { ...part, text: withoutControls(part.text, tokenizer) } : part,
  );
}

/** Applies {@link withoutControls} to the content of a message, and to the names and arguments of its calls. */
export function plainMessage(message: ChatMessage, tokenizer: Tokenizer): ChatMessage {
  const plain = (text: string): string => withoutControls(text, tokenizer);
  return {
    ...message,
    content: plainParts(message.content, tokenizer),
    tool_calls:
      message.tool_calls?.map(({ function: called, ...call }) => ({
        ...call,
        function: { name: plain(called.name), arguments: plain(called.arguments) },
      })) ?? null,
  };
}

function controlPattern(tokenizer: Tokenizer): RegExp {
  let pattern = patterns.get(tokenizer);
  if (!pattern) {
    const texts: string[] = [];
    const decoder = new TextDecoder();
    for (let id = 0; id < tokenizer.vocabSize; id++) {
      const text = tokenizer.isSpecial(id) ? decoder.decode(tokenizer.bytesOf(id)) : '';
      if (text.length > 1) texts.push(text);
    }
    texts.sort((a, b) => b.length - a.length);
    const escaped = texts.map((text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'));
    pattern = escaped.length === 0 ? /(?!)/g : new RegExp(escaped.join('|'), 'g');
    patterns.set(tokenizer, pattern);
  }
  return pattern;
}
