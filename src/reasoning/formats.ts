/** Chat template text -> the markers of reasoning: one row per known format, or tags that the template declares. */

import { withoutComments } from '../tool-calls/index.ts';

/** The markers of reasoning. */
export type ReasoningFormat =
  | {
      readonly kind: 'tags';
      readonly name: string;
      readonly begin: string;
      readonly end: string;
      /** Markers around the answer, not part of it. */
      readonly answerMarkers?: readonly string[];
      /** Whether reasoning may follow content. Only for markers that no answer contains. */
      readonly isRepeatable?: boolean;
    }
  | { readonly kind: 'harmony'; readonly name: 'harmony' };

type TagFormat = Extract<ReasoningFormat, { kind: 'tags' }>;

const THINK: TagFormat = { kind: 'tags', name: 'think', begin: '<think>', end: '</think>' };

/** Known formats by name; specific ones before general ones. */
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
  kimi_k3: {
    kind: 'tags',
    name: 'kimi_k3',
    begin: '<|open|>think<|sep|>',
    end: '<|close|>think<|sep|>',
    answerMarkers: ['<|open|>response<|sep|>', '<|close|>response<|sep|>', '<|close|>message<|sep|>'],
  },
  muse_glimmer: {
    kind: 'tags',
    name: 'muse_glimmer',
    begin: 'to=self<|message|>',
    end: '<|eom|>',
    answerMarkers: ['<|start|>assistant to=user<|message|>', 'to=user<|message|>'],
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

/** The names of the known formats. */
export type ReasoningFormatName = keyof typeof FORMATS;

/** All known formats by name. */
export const REASONING_FORMATS: Readonly<Record<ReasoningFormatName, ReasoningFormat>> = FORMATS;

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
  const known = Object.values(FORMATS).find((format) => isIn(format, text));
  if (known) return known;
  return (
    declaredTag(text) ??
    Object.values(FORMATS).findLast((format) => isReasoningOpen(format, promptTail)) ?? // the general one if several match
    openedTag(promptTail)
  );
}

/** Whether the generation prompt has opened the reasoning, so that the answer begins inside it. */
export function isReasoningOpen(format: ReasoningFormat, promptTail: string): boolean {
  const begin = format.kind === 'harmony' ? '<|channel|>analysis<|message|>' : format.begin;
  return promptTail.trimEnd().endsWith(begin.trimEnd());
}

/** The text that ends a section of reasoning. */
export function endMarker(format: ReasoningFormat): string {
  return format.kind === 'harmony' ? '<|end|>' : format.end;
}

/** What the model has to write so that its reasoning ends and its answer begins. */
export function reasoningEnd(format: ReasoningFormat): string {
  return format.kind === 'harmony' ? '<|end|><|start|>assistant<|channel|>final<|message|>' : format.end;
}

/** The texts with a meaning. Special tokens with such a text must stay in the parser's input. */
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
    case 'think_response': // some templates only describe the tags
      return text.includes('<think></think>') && text.includes('<response></response>');
    case 'think': // some templates only remove old reasoning
      return text.includes('<think>') || text.includes('</think>');
    case 'kimi_k3': // its own template builds the markers of pieces
      return text.includes('<|open|>') && (text.includes('<|end_of_msg|>') || text.includes(format.end));
    default:
      return text.includes(format.begin) && text.includes(format.end);
  }
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
