/**
 * The reasoning effort of a request -> the variables of its template, and how reasoning is turned off if the template has no variable for
 * it.
 */
import type { ValidChatRequest } from '../protocol/index.ts';
import { isReasoningOpen, type ReasoningFormat } from '../template/reasoning/index.ts';
import type { TemplateTraits } from './template-traits.ts';

type Wanted = Pick<ValidChatRequest, 'reasoning_effort' | 'continue_final_message'>;
type Effort = NonNullable<Wanted['reasoning_effort']>;
type Variables = Record<string, unknown>;

/** Words that templates use for an effort, nearest first. */
const WORDS: Readonly<Record<Effort, readonly string[]>> = {
  none: ['none', 'no_think'],
  minimal: ['minimal', 'low'],
  low: ['low', 'minimal', 'medium', 'high'],
  medium: ['medium', 'high', 'low'],
  high: ['high', 'max', 'xhigh', 'medium'],
  xhigh: ['xhigh', 'max', 'high'],
  max: ['max', 'xhigh', 'high'],
};

/** Words that most models are trained with. A template gets them unless it fails. */
const COMMON = new Set(['low', 'medium', 'high']);

/**
 * Returns the template variables for the effort, under the names that the template reads. `none` also sets `enable_thinking` and `thinking`
 * to false.
 */
export function effortVariables(
  { reasoning_effort: effort }: Wanted,
  traits: TemplateTraits,
  reasoning: ReasoningFormat | null,
): Variables {
  if (effort === null) return {};
  const name = traits.template.variables.has('reasoning_strength')
    ? 'reasoning_strength'
    : 'reasoning_effort';
  const word = WORDS[effort].find((one) => isTaken(one, name, traits));
  if (effort !== 'none') return { [name]: word ?? effort };
  const least = reasoning?.name === 'harmony' ? 'low' : null; // harmony has no word for `none`
  const said = word ?? least;
  return { ...(said === null ? {} : { [name]: said }), enable_thinking: false, thinking: false };
}

function isTaken(word: string, name: string, traits: TemplateTraits): boolean {
  const isKnown = [`'${word}'`, `"${word}"`].some((text) => traits.template.mentions(text));
  return isKnown || (COMMON.has(word) && traits.takesVariable(name, word));
}

/** Returns `thinking_mode` for a template that takes a word instead of true or false. */
export function thinkingMode(given: Variables, traits: TemplateTraits): Variables {
  if (!traits.template.variables.has('thinking_mode') || given['thinking_mode'] !== undefined) return {};
  const isOn = given['enable_thinking'] ?? (given['reasoning_effort'] === undefined ? undefined : true);
  return typeof isOn === 'boolean' ? { thinking_mode: isOn ? 'enabled' : 'disabled' } : {};
}

/** For the effort `none`, closes the reasoning that a rendered prompt has opened. */
export function closeReasoning(text: string, request: Wanted, reasoning: ReasoningFormat | null): string {
  if (request.reasoning_effort !== 'none' || request.continue_final_message) return text;
  if (reasoning?.kind !== 'tags' || !isReasoningOpen(reasoning, text)) return text;
  return `${text}${text.endsWith('\n') ? '' : '\n'}${reasoning.end}\n\n`;
}

/** Returns texts that the answer must not contain: for the effort `none`, the marker that begins reasoning. */
export function forbiddenTexts(request: Wanted, reasoning: ReasoningFormat | null): string[] {
  const isOff = request.reasoning_effort === 'none' && reasoning !== null && reasoning.name !== 'harmony';
  return isOff ? [reasoning.begin.trimEnd()] : [];
}
