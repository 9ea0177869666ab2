/** All features of an answer, in the order in which they act on a choice. */
import type { Feature } from '../feature.ts';
import type { OpenedRequest } from '../open-request.ts';
import { constraint } from './constraint.ts';
import { contextShift } from './context-shift.ts';
import { logitsHooks } from './logits-hooks.ts';
import { promptScores } from './prompt-scores.ts';
import { routedExperts } from './routed-experts.ts';
import { savedPrompt } from './saved-prompt.ts';
import { speculation } from './speculation.ts';
import { thinkingBudget } from './thinking-budget.ts';

/** A feature that requests may ask for. */
type FeatureRow = {
  /** Returns false if a request does not ask for the feature. It then costs the request nothing else. */
  readonly isAsked: (opened: OpenedRequest) => boolean;
  /** Plans the feature. Returns null if it has nothing to do, and throws if it cannot be honoured. */
  readonly plan: (opened: OpenedRequest) => Feature | null | Promise<Feature | null>;
};

const FEATURES: readonly FeatureRow[] = [
  { isAsked: ({ transfer }) => transfer.kind !== 'none', plan: savedPrompt },
  { isAsked: ({ matchers }) => matchers.length > 0, plan: constraint },
  { isAsked: ({ message }) => message.reasoning !== null, plan: thinkingBudget },
  { isAsked: ({ request }) => request.prompt_logprobs !== null, plan: promptScores },
  { isAsked: ({ request }) => request.logits_processors.length > 0, plan: logitsHooks },
  {
    isAsked: ({ request, context }) => (request.speculation ?? context.speculation) !== false,
    plan: speculation,
  },
  { isAsked: ({ request }) => request.return_routed_experts, plan: routedExperts },
  { isAsked: ({ prompt }) => prompt.shift !== null, plan: contextShift },
];

/** Returns the features that a request asks for. */
export async function planFeatures(opened: OpenedRequest): Promise<Feature[]> {
  const features: Feature[] = [];
  for (const { isAsked, plan } of FEATURES) {
    const feature = isAsked(opened) ? await plan(opened) : null;
    if (feature) features.push(feature);
  }
  return features;
}
