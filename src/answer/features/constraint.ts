/** The matchers of a request -> each choice under its grammar: from the first token on, or from the end of its reasoning on. */
import type { Sequence } from '../../engine/index.ts';
import { errorAt } from '../../errors.ts';
import type { Feature } from '../feature.ts';
import type { OpenedRequest } from '../open-request.ts';

export function constraint({ request, matchers, coversReasoning }: OpenedRequest): Feature {
  return {
    part: ({ index, message }) => {
      if (request.use_beam_search && !coversReasoning && message.isReasoning)
        throw errorAt(
          'use_beam_search',
          'UNSUPPORTED',
          'a constraint that begins after reasoning cannot be searched with beams',
        );
      let isHeld = false;
      return {
        beforeNext(sequence) {
          const waits = !coversReasoning && message.isReasoning;
          if (!waits) sequence.matcher = matchers[index]!;
          if (!waits || !isHeld) holdEnd(sequence, waits);
          isHeld = waits;
          return waits;
        },
      };
    },
  };
}

/**
 * While the reasoning runs, prevents the sequence from ending, and pauses drafts, because a draft past the end of the reasoning would not
 * be checked by the grammar.
 */
function holdEnd({ sampler, speculation }: Sequence, isHeld: boolean): void {
  sampler.holdEnd(isHeld);
  if (speculation) speculation.isPaused = isHeld;
}
