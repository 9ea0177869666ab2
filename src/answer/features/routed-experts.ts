/** `return_routed_experts` of a request -> the experts that the tokens of its prompt and of each choice took. */
import { ExpertRows } from '../../engine/index.ts';
import { toRoutedExperts } from '../../protocol/index.ts';
import type { Feature } from '../feature.ts';
import { requireKnownExperts } from '../known-experts.ts';
import type { OpenedRequest } from '../open-request.ts';

export function routedExperts({ prompt }: OpenedRequest): Feature {
  let sibling: ExpertRows | null = null;
  return {
    part: ({ tokenIds }) => {
      const experts = new ExpertRows(prompt.ids.length, sibling);
      sibling = experts;
      return {
        extras: { experts },
        report() {
          requireKnownExperts();
          const { layers, used, ids } = experts.read(tokenIds.length);
          return { routed_experts: toRoutedExperts(layers, used, ids) };
        },
      };
    },
  };
}
