/** Chat template text -> the markers of reasoning: one row per known format, or tags that the template declares. */

import { HARMONY, withoutComments } from '../tool-calls/index.ts';

/** The markers of reasoning. */
export type ReasoningFormat = {
  readonly kind: 'tags' | 'harmony';
  readonly name: string;
  readonly begin: string;
  /** The text that ends a section of reasoning. */
  readonly end: string;
  /** What begins the answer behind it. */
  readonly answerBegin?: string;
  /** Markers around the answer, not part of it. */
  readonly answerMarkers?: readonly string[];
  /** Whether reasoning may follow content. Only for markers that no answer contains. */
  readonly isRepeatable?: boolean;
};

/** A format without its name. `signs`: what a template with it holds; default: both markers. */
type FormatRow = Omit<ReasoningFormat, 'kind' | 'name'> & {
  readonly kind?: 'harmony';
  readonly signs?: readonly (string | RegExp)[];
};

const THINK = { begin: '<think>', end: '</think>' };

/** Formats by name; specific ones before general ones. */
const FORMATS = {
  harmony: {
    kind: 'harmony',
    begin: `${HARMONY.channel}analysis${HARMONY.message}`,
    end: HARMONY.end,
    answerBegin: `${HARMONY.start}assistant${HARMONY.channel}final${HARMONY.message}`,
    answerMarkers: Object.values(HARMONY),
    signs: [HARMONY.channel, HARMONY.message],
  },
  gemma4: {
    begin: '<|channel>thought\n',
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
    answerMarkers: ['<|open|>response<|sep|>', '<|close|>response<|sep|>', '<|close|>message<|sep|>'],
    // its own template builds the markers of pieces
    signs: ['<|open|>', /<\|end_of_msg\|>|<\|close\|>think<\|sep\|>/],
  },
  muse_glimmer: {
    begin: 'to=self<|message|>',
    end: '<|eom|>',
    answerMarkers: ['<|start|>assistant to=user<|message|>', 'to=user<|message|>'],
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
 * The reasoning format of models trained with this template; null if it has none. The end of the rendered prompt identifies
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
    ROWS.findLast(({ format }) => isReasoningOpen(format, promptTail))?.format ?? // the general one if several match
    openedTag(promptTail)
  );
}

/** Whether the generation prompt has opened the reasoning, so that the answer begins inside it. */
export function isReasoningOpen(format: ReasoningFormat, promptTail: string): boolean {
  return promptTail.trimEnd().endsWith(format.begin.trimEnd());
}

/** What the model has to write so that its reasoning ends and its answer begins. */
export function reasoningEnd(format: ReasoningFormat): string {
  return format.end + (format.answerBegin ?? '');
}

/** The texts with a meaning. Special tokens with such a text must stay in the parser's input. */
export function reasoningMarkers(format: ReasoningFormat): readonly string[] {
  return [format.begin, format.end, ...(format.answerMarkers ?? [])];
}

/** A pair of tags of the template whose name means thinking. */
function declaredTag(text: string): ReasoningFormat | null {
  for (const [end, name] of text.matchAll(DECLARED_TAG)) {
    const begin = `<${name}>`;
    if (text.includes(begin)) return { kind: 'tags', name: name!, begin, end };
  }
  return null;
}

/** A tag with such a name at the end of the generation prompt. */
function openedTag(promptTail: string): ReasoningFormat | null {
  const name = OPENED_TAG.exec(promptTail.slice(-MAX_TAIL_LENGTH))?.[1];
  return name === undefined ? null : { kind: 'tags', name, begin: `<${name}>`, end: `</${name}>` };
}
