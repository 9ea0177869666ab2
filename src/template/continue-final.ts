/** Messages -> messages with a tag at the end of the last one; rendered text -> the text up to that tag. */
import { isObject } from '../common/index.ts';
import { OnpolicyError } from '../errors.ts';

const TAG = 'CONTINUE_FINAL_MESSAGE_TAG ';

type Container = Readonly<Record<string, unknown>> | ReadonlyMap<string, unknown>;

function isContainer(value: unknown): value is Container {
  return isObject(value);
}

function get(container: Container, key: string): unknown {
  if (container instanceof Map) return container.get(key);
  return Object.hasOwn(container, key) ? (container as Readonly<Record<string, unknown>>)[key] : undefined;
}

function withValue(container: Container, key: string, value: unknown): Container {
  return container instanceof Map ? new Map(container).set(key, value) : { ...container, [key]: value };
}

/** Returns a copy of the messages with the tag after the last text of the last message, and that text without the tag. */
export function markFinalMessage(messages: readonly unknown[]): { messages: unknown[]; text: string } {
  const last = messages.at(-1);
  if (!isContainer(last)) return fail('there is no final message to continue');
  const content = get(last, 'content');
  if (typeof content === 'string') {
    const marked = withValue(last, 'content', content + TAG);
    return { messages: [...messages.slice(0, -1), marked], text: content };
  }
  if (!Array.isArray(content)) return fail('the final message has no text to continue');
  for (let i = content.length - 1; i >= 0; i--) {
    const part: unknown = content[i];
    const text = isContainer(part) ? get(part, 'text') : undefined;
    if (typeof text !== 'string') continue;
    const parts = [
      ...content.slice(0, i),
      withValue(part as Container, 'text', text + TAG),
      ...content.slice(i + 1),
    ];
    return { messages: [...messages.slice(0, -1), withValue(last, 'content', parts)], text };
  }
  return fail('the final message has no text to continue');
}

/** Cuts the rendered text at the end of the final message. `text` is the original message. */
export function cutAtTag(rendered: string, text: string): string {
  const bare = TAG.trimEnd();
  const at = rendered.lastIndexOf(bare);
  if (at < 0 || !rendered.includes(text.trim()))
    return fail('the final message does not appear in the chat after applying the chat template');
  // If the blank of the tag is missing, the template trims the message.
  return rendered.startsWith(TAG, at) ? rendered.slice(0, at) : rendered.slice(0, at).trimEnd();
}

function fail(message: string): never {
  throw new OnpolicyError('TEMPLATE_FAILED', `continue_final_message is set, but ${message}`);
}
