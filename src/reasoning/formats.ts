/** chat template text -> how the model marks its reasoning: one row per known way, and tags that a template declares. */

import { withoutComments } from '../tool-calls/index.ts';

/** How a model marks its reasoning. */
export type ReasoningFormat =
  | {
      readonly kind: 'tags';
      readonly name: string;
      readonly begin: string;
      readonly end: string;
      /** Markers around the answer itself, which are not part of it. */
      readonly answerMarkers?: readonly string[];
      /** Reasoning may come again after content. Only for markers that no answer contains. */
      readonly isRepeatable?: boolean;
    }
  | { readonly kind: 'harmony'; readonly name: 'harmony' };

type TagFormat = Extract<ReasoningFormat, { kind: 'tags' }>;

const THINK: TagFormat = { kind: 'tags', name: 'think', begin: '<think>', end: '</think>' };

/** Known ways by name, for options. What is peculiar stands before what is shared. */
const FORMATS = {
  harmony: { kind: 'harmony', name: 'harmony' },
  gemma4: {
    kind: 'tags',
    name: 'gemma4',
    begin: '<|channel>thought\n',
    end: '<channel|>',
    isRepeatable: true,
  },
  cohere: {
    kind: 'tags',
    name: 'cohere',
    begin: '<|START_THINKING|>',
    end: '<|END_THINKING|>',
    answerMarkers: ['<|START_RESPONSE|>', '<|END_RESPONSE|>', '<|START_TEXT|>', '<|END_TEXT|>'],
    isRepeatable: true,
  },
  mistral: { kind: 'tags', name: 'mistral', begin: '[THINK]', end: '[/THINK]', isRepeatable: true },
  seed_oss: { kind: 'tags', name: 'seed_oss', begin: '<seed:think>', end: '</seed:think>' },
  apertus: {
    kind: 'tags',
    name: 'apertus',
    begin: '<|inner_prefix|>',
    end: '<|inner_suffix|>',
    isRepeatable: true,
  },
  apriel: {
    kind: 'tags',
    name: 'apriel',
    begin: 'Here are my reasoning steps:',
    end: '[BEGIN FINAL RESPONSE]',
    answerMarkers: ['[END FINAL RESPONSE]'],
  },
  granite: {
    kind: 'tags',
    name: 'granite',
    begin: 'Here is my thought process:',
    end: 'Here is my response:',
  },
  kimi_vl: { kind: 'tags', name: 'kimi_vl', begin: '◁think▷', end: '◁/think▷' },
  think_response: { ...THINK, name: 'think_response', answerMarkers: ['<response>', '</response>'] },
  think: THINK,
} as const satisfies Readonly<Record<string, ReasoningFormat>>;

/** The names of the known ways to mark reasoning. */
export type ReasoningFormatName = keyof typeof FORMATS;

/** All known ways to mark reasoning, by name. */
export const REASONING_FORMATS: Readonly<Record<ReasoningFormatName, ReasoningFormat>> = FORMATS;

const TAG_NAME =
  '((?:[\\w.-]+:)?(?:[\\w.-]*think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad|analysis)(?::[\\w.-]+)?)';
const DECLARED_TAG = new RegExp(`</${TAG_NAME}>`, 'gi');
const MAX_TAIL_LENGTH = 200;
const OPENED_TAG = new RegExp(`<${TAG_NAME}>\\s*$`, 'i');

/**
 * How a model marks its reasoning that was trained with this template; null when it does not. The end of the rendered
 * prompt helps where a template builds its markers from pieces.
 */
export function detectReasoning(template: string, promptTail = ''): ReasoningFormat | null {
  const text = withoutComments(template);
  const known = Object.values(FORMATS).find((format) => isIn(format, text));
  if (known) return known;
  return (
    declaredTag(text) ??
    Object.values(FORMATS).findLast((format) => isReasoningOpen(format, promptTail)) ?? // the plain one of two alike
    openedTag(promptTail)
  );
}

/** The generation prompt has opened the reasoning already, so that the answer begins inside of it. */
export function isReasoningOpen(format: ReasoningFormat, promptTail: string): boolean {
  const begin = format.kind === 'harmony' ? '<|channel|>analysis<|message|>' : format.begin;
  return promptTail.trimEnd().endsWith(begin.trimEnd());
}

/** The texts with a meaning: special tokens with such a text have to stay in the text that the parser reads. */
export function reasoningMarkers(format: ReasoningFormat): readonly string[] {
  if (format.kind === 'harmony')
    return ['<|start|>', '<|channel|>', '<|constrain|>', '<|message|>', '<|end|>', '<|call|>', '<|return|>'];
  return [format.begin, format.end, ...(format.answerMarkers ?? [])];
}

function isIn(format: ReasoningFormat, text: string): boolean {
  if (format.kind === 'harmony') return text.includes('<|channel|>') && text.includes('<|message|>');
  switch (format.name) {
    case 'gemma4':
      return text.includes('<|channel>') && text.includes('<channel|>');
    case 'think_response': // a template may only describe the tags to the model
      return text.includes('<think></think>') && text.includes('<response></response>');
    case 'think': // a template may only cut old reasoning off
      return text.includes('<think>') || text.includes('</think>');
    default:
      return text.includes(format.begin) && text.includes(format.end);
  }
}

/** A pair of tags that the template writes and whose name speaks of thinking. */
function declaredTag(text: string): ReasoningFormat | null {
  for (const [end, name] of text.matchAll(DECLARED_TAG)) {
    const begin = `<${name}>`;
    if (text.includes(begin)) return { kind: 'tags', name: name!, begin, end };
  }
  return null;
}

/** A tag of such a name that the generation prompt ends with. */
function openedTag(promptTail: string): ReasoningFormat | null {
  const name = OPENED_TAG.exec(promptTail.slice(-MAX_TAIL_LENGTH))?.[1];
  return name === undefined ? null : { kind: 'tags', name, begin: `<${name}>`, end: `</${name}>` };
}
