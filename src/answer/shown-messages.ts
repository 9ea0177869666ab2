/** The messages of a request and its rendered prompt -> the messages whose text is missing in the prompt. */
import { errorAt, type OnpolicyError } from '../errors.ts';
import type { ChatContentPart, ChatMessage } from '../protocol/index.ts';

/** A run of words that templates do not change: it stays the same when quotes and line breaks are escaped. */
const WORDS = /[\p{L}\p{N}]+(?: [\p{L}\p{N}]+){2,}/u;
/** Number of characters of a text that are searched for such a run. */
const SEARCHED = 1000;

/**
 * Returns the indexes of messages that may be missing: a part of their text is not in the prompt unchanged. Messages of the assistant are
 * not checked, because templates shorten them on purpose.
 */
export function unfoundMessages(messages: readonly ChatMessage[], prompt: string): readonly number[] {
  const unfound: number[] = [];
  let at = 0; // messages mostly follow each other, so that the prompt is read once
  const find = (text: string): boolean => {
    let found = prompt.indexOf(text, at);
    if (found < 0) found = prompt.slice(0, at + text.length).indexOf(text);
    else at = found + text.length;
    return found >= 0;
  };
  const isFound = (part: ChatContentPart): boolean => {
    if (part.type !== 'text') return true;
    const text = part.text.trim();
    if (text === '' || find(text)) return true;
    const [words] = WORDS.exec(text.slice(0, SEARCHED)) ?? [];
    return words !== undefined && find(words);
  };
  for (const [index, { role, content }] of messages.entries())
    if (role !== 'assistant' && !content.every(isFound)) unfound.push(index);
  return unfound;
}

const MARK = 'missingmessagex';

/** Returns the messages with a marker word in place of some texts. A template that shows the word shows the text in some form. */
export function withMarks(
  messages: readonly ChatMessage[],
  places: readonly number[],
): readonly ChatMessage[] {
  const marked = new Set(places);
  return messages.map((message, index) =>
    marked.has(index) ? { ...message, content: [{ type: 'text', text: markOf(index) }] } : message,
  );
}

/** Returns the indexes of markers that are not in a prompt. */
export function missingMarks(prompt: string, places: readonly number[]): readonly number[] {
  return places.filter((index) => !prompt.includes(markOf(index)));
}

function markOf(index: number): string {
  return `${MARK}${index}x`;
}

export function missingMessage({ role }: ChatMessage, index: number): OnpolicyError {
  return errorAt(
    `messages.${index}`,
    'TEMPLATE_FAILED',
    `the chat template does not show this message of the role ${JSON.stringify(role)}`,
  );
}
