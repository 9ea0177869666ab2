/** How much a model should reason -> what its template is told, and how reasoning is off where the template cannot say so. */
import type { ValidChatRequest } from '../protocol/index.ts';
import { isReasoningOpen, type ReasoningFormat } from '../reasoning/index.ts';
import type { ChatTemplate } from '../template/index.ts';

type Wanted = Pick<ValidChatRequest, 'reasoning_effort' | 'continue_final_message'>;

/**
 * Variables of the template. A word that it does not know becomes `low`, the least that most models are trained with; `none` is also said
 * by the switches that templates have for it.
 */
export function effortVariables(
  { reasoning_effort: effort }: Wanted,
  template: ChatTemplate,
  reasoning: ReasoningFormat | null,
): Record<string, unknown> {
  if (effort === null) return {};
  const isKnown = [`'${effort}'`, `"${effort}"`].some((word) => template.mentions(word));
  if (effort === 'minimal') return { reasoning_effort: isKnown ? effort : 'low' };
  if (effort !== 'none') return { reasoning_effort: effort };
  const hasOnlyEffort = reasoning?.kind === 'harmony';
  return {
    ...(isKnown ? { reasoning_effort: effort } : hasOnlyEffort ? { reasoning_effort: 'low' } : {}),
    enable_thinking: false,
    thinking: false,
  };
}

/** With `none`, ends the reasoning that a rendered prompt has opened. */
export function closeReasoning(text: string, request: Wanted, reasoning: ReasoningFormat | null): string {
  if (request.reasoning_effort !== 'none' || request.continue_final_message) return text;
  if (reasoning?.kind !== 'tags' || !isReasoningOpen(reasoning, text)) return text;
  return `${text}${text.endsWith('\n') ? '' : '\n'}${reasoning.end}\n\n`;
}

/** With `none`, texts that the answer must not contain: those that begin reasoning. */
export function forbiddenTexts(request: Wanted, reasoning: ReasoningFormat | null): string[] {
  return request.reasoning_effort === 'none' && reasoning?.kind === 'tags' ? [reasoning.begin.trimEnd()] : [];
}
