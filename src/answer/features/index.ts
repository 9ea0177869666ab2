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

/** Plans a feature of a request. Returns null if the request does not ask for it, and throws if it cannot be honoured. */
type FeaturePlanner = (opened: OpenedRequest) => Feature | null | Promise<Feature | null>;

const PLANNERS: readonly FeaturePlanner[] = [
  savedPrompt,
  constraint,
  thinkingBudget,
  promptScores,
  logitsHooks,
  speculation,
  routedExperts,
  contextShift,
];

/** Returns the features that a request asks for. */
export async function planFeatures(opened: OpenedRequest): Promise<Feature[]> {
  const features: Feature[] = [];
  for (const plan of PLANNERS) {
    const feature = await plan(opened);
    if (feature) features.push(feature);
  }
  return features;
}
