/** A format of messages with headers -> its markers, and the kind of message that a header announces. */
import { HARMONY, harmonyRecipient, INKLING, MUSE } from '../tool-calls/index.ts';

/**
 * How the parser treats a message. `call`: it is passed on with its header. `dropped`: it is for a tool that does not exist, so it
 * is left out of the answer.
 */
export type MessageKind = 'reasoning' | 'content' | 'call' | 'dropped';

/** The syntax of messages with headers. */
export type Framing = {
  /** Markers that start a header. */
  readonly starts: readonly string[];
  /** Markers that end a header and begin its message. */
  readonly bodies: readonly string[];
  /** Markers that end a message. A marker that starts the next header is put back into the input. */
  readonly ends: readonly string[];
  /** The header of reasoning that the prompt has begun. */
  readonly reasoning: string;
  /** Returns true if a text without a start marker may be the first header, whose start marker is in the prompt. */
  readonly isHeader: (text: string) => boolean;
  /** Returns true if such a text, at which the answer ends, is certainly an incomplete header. */
  readonly isCut: (text: string) => boolean;
  /** Returns the kind of a message. `isTool` returns true if a tool of the request has this name. */
  readonly kindOf: (header: string, isTool: (name: string) => boolean) => MessageKind;
  /** The header as the tool-call parser reads it. */
  readonly callHeader: (header: string) => string;
};

const TO = ' to=';
const startsTo = (text: string): boolean => TO.startsWith(text) || text.startsWith(TO);
const hasTo = (text: string): boolean => text.startsWith(TO);

const harmony: Framing = {
  starts: [HARMONY.start, HARMONY.channel],
  bodies: [HARMONY.message],
  ends: [HARMONY.end, HARMONY.return, HARMONY.call, HARMONY.start, HARMONY.channel],
  reasoning: `${HARMONY.channel}analysis${HARMONY.message}`,
  isHeader: startsTo,
  isCut: hasTo,
  kindOf(header, isTool) {
    const recipient = harmonyRecipient(header);
    if (recipient !== null && (recipient.startsWith('functions.') || isTool(recipient))) return 'call';
    const channel = header.slice(header.lastIndexOf(HARMONY.channel));
    if (channel.startsWith(`${HARMONY.channel}final`)) return 'content';
    if (recipient !== null && !['assistant', 'user'].includes(recipient)) return 'dropped';
    const isOwn = recipient === 'assistant' || channel.startsWith(`${HARMONY.channel}analysis`);
    return isOwn ? 'reasoning' : 'content';
  },
  callHeader: (header) => (header.startsWith(TO) ? `${HARMONY.start}assistant` : '') + header,
};

const muse: Framing = {
  starts: [MUSE.start],
  bodies: [MUSE.message],
  ends: [MUSE.endOfMessage, MUSE.endOfTurn, MUSE.start],
  reasoning: ` to=self${MUSE.message}`,
  isHeader: (text) => startsTo(text) || startsTo(` ${text}`),
  isCut: (text) => hasTo(text) || hasTo(` ${text}`),
  kindOf(header) {
    const recipient = museRecipient(header);
    return recipient === 'self' ? 'reasoning' : recipient === 'user' ? 'content' : 'call';
  },
  callHeader: (header) => `${MUSE.start}assistant${TO}${museRecipient(header)}${MUSE.message}`,
};

function museRecipient(header: string): string {
  return /to=([^\s<]+)/.exec(header)?.[1] ?? 'user';
}

const inkling: Framing = {
  starts: [INKLING.message, ...INKLING.contents],
  bodies: INKLING.contents,
  ends: [INKLING.endOfMessage, INKLING.endOfSampling, INKLING.message, ...INKLING.contents],
  reasoning: INKLING.thinking,
  isHeader: (text) => /^[\w.-]*$/.test(text),
  isCut: () => false,
  kindOf(header) {
    if (header.endsWith(INKLING.thinking)) return 'reasoning';
    return header.endsWith(INKLING.call) ? 'call' : header.endsWith(INKLING.text) ? 'content' : 'dropped';
  },
  callHeader: () => INKLING.call,
};

/** Framings by the names of their formats. */
export const FRAMINGS = { harmony, muse_glimmer: muse, inkling } as const;
