/** Chat template text -> the markers of reasoning: one row per known format, or tags that the template declares. */

import { HARMONY, INKLING, MUSE, withoutComments } from '../tool-calls/index.ts';

/** The markers of reasoning. */
export type ReasoningFormat = {
  /** `messages`: reasoning and answer are messages with headers, see `framings.ts`. */
  readonly kind: 'tags' | 'messages';
  readonly name: string;
  readonly begin: string;
  /** The text that ends a section of reasoning. */
  readonly end: string;
  /** The marker that begins the answer after the reasoning. */
  readonly answerBegin?: string;
  /** A marker of the answer that ends reasoning without its end marker. */
  readonly answerOpens?: string;
  /** Markers around the answer, not part of it. */
  readonly answerMarkers?: readonly string[];
  /** The marker at the start of `begin` that is followed by the name of a channel. It begins reasoning with any name. */
  readonly channel?: string;
  /** True if reasoning may follow content. Only for markers that answers never contain. */
  readonly isRepeatable?: boolean;
};

/** A format without its name. `signs` are the texts that a template of the format contains. Default: both markers. */
type FormatRow = Omit<ReasoningFormat, 'kind' | 'name'> & {
  readonly kind?: 'messages';
  readonly signs?: readonly (string | RegExp)[];
};

const THINK = { begin: '<think>', end: '</think>' };

/** Formats by name; specific ones before general ones. */
const FORMATS = {
  harmony: {
    kind: 'messages',
    begin: `${HARMONY.channel}analysis${HARMONY.message}`,
    end: HARMONY.end,
    answerBegin: `${HARMONY.start}assistant${HARMONY.channel}final${HARMONY.message}`,
    answerMarkers: Object.values(HARMONY),
    signs: [HARMONY.channel, HARMONY.message],
  },
  gemma4: {
    begin: '<|channel>thought\n',
    channel: '<|channel>',
    end: '<channel|>',
    isRepeatable: true,
    signs: ['<|channel>', '<channel|>'],
  },
  cohere: {
    begin: '<|START_THINKING|>',
    end: '<|END_THINKING|>',
    answerMarkers: ['<|START_RESPONSE|>', '<|END_RESPONSE|>', '<|START_TEXT|>', '<|END_TEXT|>'],
    isRepeatable: true,
  },
  kimi_k3: {
    begin: '<|open|>think<|sep|>',
    end: '<|close|>think<|sep|>',
    answerOpens: '<|open|>response<|sep|>',
    answerMarkers: ['<|open|>response<|sep|>', '<|close|>response<|sep|>', '<|close|>message<|sep|>'],
    // the model's template builds the markers from pieces
    signs: ['<|open|>', /<\|end_of_msg\|>|<\|close\|>think<\|sep\|>/],
  },
  muse_glimmer: {
    kind: 'messages',
    begin: `to=self${MUSE.message}`,
    end: MUSE.endOfMessage,
    answerMarkers: Object.values(MUSE),
  },
  inkling: {
    kind: 'messages',
    begin: INKLING.thinking,
    end: INKLING.endOfMessage,
    answerBegin: `${INKLING.message}${INKLING.text}`,
    answerMarkers: [INKLING.message, ...INKLING.contents, INKLING.endOfMessage, INKLING.endOfSampling],
    signs: [INKLING.thinking, INKLING.endOfMessage],
  },
  mistral: { begin: '[THINK]', end: '[/THINK]', isRepeatable: true },
  seed_oss: { begin: '<seed:think>', end: '</seed:think>' },
  apertus: { begin: '<|inner_prefix|>', end: '<|inner_suffix|>', isRepeatable: true },
  apriel: {
    begin: 'Here are my reasoning steps:',
    end: '[BEGIN FINAL RESPONSE]',
    answerMarkers: ['[END FINAL RESPONSE]'],
  },
  granite: { begin: 'Here is my thought process:', end: 'Here is my response:' },
  kimi_vl: { begin: '◁think▷', end: '◁/think▷' },
  solar_open2: { begin: '<|think:start|>', end: '<|think:end|>', isRepeatable: true },
  think_answer: {
    ...THINK,
    answerMarkers: ['<answer>', '</answer>'],
    signs: ['</think>', '<answer>'],
  },
  think_response: {
    ...THINK,
    answerMarkers: ['<response>', '</response>'],
    signs: ['<think></think>', '<response></response>'], // some templates only describe the tags
  },
  think: { ...THINK, signs: [/<\/?think>/] }, // some templates only remove old reasoning
} as const satisfies Readonly<Record<string, FormatRow>>;

/** The names of the known formats. */
export type ReasoningFormatName = keyof typeof FORMATS;

const ROWS = Object.entries<FormatRow>(FORMATS).map(([name, { signs, kind = 'tags', ...markers }]) => ({
  signs: signs ?? [markers.begin, markers.end],
  format: { kind, name, ...markers } as ReasoningFormat,
}));

/** All known formats by name. */
export const REASONING_FORMATS = Object.fromEntries(
  ROWS.map(({ format }) => [format.name, format]),
) as Readonly<Record<ReasoningFormatName, ReasoningFormat>>;

const TAG_NAME =
  '((?:[\\w.-]+:)?(?:[\\w.-]*think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad|analysis)(?::[\\w.-]+)?)';
const DECLARED_TAG = new RegExp(`</${TAG_NAME}>`, 'gi');
const MAX_TAIL_LENGTH = 200;
const OPENED_TAG = new RegExp(`<${TAG_NAME}>\\s*$`, 'i');

/**
 * Returns the reasoning format of models trained with this template, or null. The end of the rendered prompt identifies
 * markers that the template builds from pieces.
 */
export function detectReasoning(template: string, promptTail = ''): ReasoningFormat | null {
  const text = withoutComments(template);
  const holds = (sign: string | RegExp): boolean =>
    typeof sign === 'string' ? text.includes(sign) : sign.test(text);
  const known = ROWS.find(({ signs }) => signs.every(holds))?.format;
  return (
    known ??
    declaredTag(text) ??
    ROWS.findLast(({ format }) => isReasoningOpen(format, promptTail))?.format ?? // takes the most general of several matches
    openedTag(promptTail)
  );
}

/** Returns true if the generation prompt has opened the reasoning, so that the answer begins inside it. */
export function isReasoningOpen(format: ReasoningFormat, promptTail: string): boolean {
  return promptTail.trimEnd().endsWith(format.begin.trimEnd());
}

/** Returns a rendered generation prompt with reasoning opened at its end, whether or not the template has opened or ended it. */
export function openReasoning(format: ReasoningFormat, prompt: string): string {
  if (isReasoningOpen(format, prompt)) return prompt;
  const bare = prompt.trimEnd();
  if (format.kind !== 'tags' || !bare.endsWith(format.end)) return prompt + format.begin;
  const open = bare.slice(0, -format.end.length);
  return isReasoningOpen(format, open) ? open : open + format.begin;
}

/** The fields of a request that say whether its last message is continued, and its text. */
type Continued = {
  readonly continue_final_message: boolean;
  readonly messages: readonly {
    readonly content: readonly { readonly type: string; readonly text?: string }[];
    readonly reasoning: string | null;
  }[];
};

/** Returns the reasoning that a request continues: that of a last message without content. Null if there is none. */
export function continuedReasoning({ continue_final_message, messages }: Continued): string | null {
  const last = continue_final_message ? messages.at(-1) : undefined;
  return last?.reasoning && last.content.every(({ text }) => text === '') ? last.reasoning : null;
}

/** Returns true if the continued message ends inside its reasoning: it has no content, or the content has opened reasoning. */
export function continuesReasoning(format: ReasoningFormat, request: Continued): boolean {
  if (continuedReasoning(request) !== null) return true;
  const last = request.continue_final_message ? request.messages.at(-1) : undefined;
  const text = last?.content.map((part) => part.text ?? '').join('') ?? '';
  const begin = (format.channel ?? format.begin).trimEnd();
  const at = text.lastIndexOf(begin);
  const isPlaced = format.isRepeatable || format.kind === 'messages' || text.trimStart().startsWith(begin);
  return at >= 0 && isPlaced && !text.includes(format.end, at);
}

/** Returns the text that ends the reasoning and begins the answer. */
export function reasoningEnd(format: ReasoningFormat): string {
  return format.end + (format.answerBegin ?? '');
}

/** Returns the markers of a format. Special tokens with such a text must stay in the parser's input. */
export function reasoningMarkers(format: ReasoningFormat): readonly string[] {
  return [format.begin, format.end, ...(format.answerMarkers ?? [])];
}

/** Returns the format of a pair of tags in the template whose name means thinking, or null. */
function declaredTag(text: string): ReasoningFormat | null {
  for (const [end, name] of text.matchAll(DECLARED_TAG)) {
    const begin = `<${name}>`;
    if (text.includes(begin)) return { kind: 'tags', name: name!, begin, end };
  }
  return null;
}

/** Returns the format of a tag with such a name at the end of the generation prompt, or null. */
function openedTag(promptTail: string): ReasoningFormat | null {
  const name = OPENED_TAG.exec(promptTail.slice(-MAX_TAIL_LENGTH))?.[1];
  return name === undefined ? null : { kind: 'tags', name, begin: `<${name}>`, end: `</${name}>` };
}
