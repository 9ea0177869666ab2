/** Token counts of several requests -> their sums. */
import type { Usage } from './chat-completion-response.ts';

/** Returns the sums. Tokens of media and of reasoning are absent if no request has a count of them. */
export function sumUsage(usages: readonly Usage[]): Usage {
  const sum = (of: (usage: Usage) => number | undefined): number =>
    usages.reduce((total, usage) => total + (of(usage) ?? 0), 0);
  const sumIfAny = <Name extends string>(
    name: Name,
    of: (usage: Usage) => number | undefined,
  ): { readonly [Key in Name]?: number } =>
    usages.some((usage) => of(usage) !== undefined) ? ({ [name]: sum(of) } as Record<Name, number>) : {};
  return {
    prompt_tokens: sum((usage) => usage.prompt_tokens),
    total_tokens: sum((usage) => usage.total_tokens),
    completion_tokens: sum((usage) => usage.completion_tokens),
    prompt_tokens_details: {
      cached_tokens: sum((usage) => usage.prompt_tokens_details?.cached_tokens),
      ...sumIfAny('media_tokens', (usage) => usage.prompt_tokens_details?.media_tokens),
    },
    completion_tokens_details: {
      accepted_prediction_tokens: sum((u) => u.completion_tokens_details?.accepted_prediction_tokens),
      rejected_prediction_tokens: sum((u) => u.completion_tokens_details?.rejected_prediction_tokens),
      ...sumIfAny('reasoning_tokens', (usage) => usage.completion_tokens_details?.reasoning_tokens),
    },
  };
}
