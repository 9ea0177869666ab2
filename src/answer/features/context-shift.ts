/** `context_shift` of a request -> when the context of a choice is full, another sequence continues with the tokens that are left. */
import { type Group, Sequence } from '../../engine/index.ts';
import type { SampledRows } from '../../engine/native/index.ts';
import { tokensToDrop, withoutDropped } from '../context-shift.ts';
import type { Feature } from '../feature.ts';
import type { OpenedRequest } from '../open-request.ts';

export function contextShift({ prompt, rules }: OpenedRequest): Feature {
  const shift = prompt.shift!;
  const { contextSize, keep } = shift;
  return {
    part: () => {
      let { dropped } = shift; // tokens dropped of the prompt and of the choice
      let forced = 0; // forced tokens of the row that have not been reported yet
      return {
        extras: { maxOutputs: Math.min(rules.maxTokens, contextSize - prompt.ids.length) },
        follow(before, rows, row) {
          forced = forced > 0 ? forced - 1 : forcedIn(rows, row);
          if (forced > 0 || before.length < contextSize) return null;
          const count = tokensToDrop(before.length, shift);
          dropped += count;
          const left = withoutDropped(before.tokens(0, before.length), keep, count);
          return continued(before, { ...before.group, prompt: left }, contextSize);
        },
        report: () => ({ context_shift: { kept_tokens: keep, dropped_tokens: dropped } }),
      };
    },
  };
}

/** Returns the sequence that continues one that has ended. It is not drafted for. */
function continued(before: Sequence, group: Group, contextSize: number): Sequence {
  const maxOutputs = Math.min(before.maxOutputs, contextSize - group.prompt.length);
  const { cachedTokens } = before.place;
  const next = new Sequence(group, before.index, before.sampler, { maxOutputs, cachedTokens });
  next.matcher = before.matcher;
  next.outputsBeforeForced = before.outputsBeforeForced;
  Object.assign(next.times, before.times, { counted: 0, hasStarted: true });
  return next;
}

function forcedIn({ forced }: SampledRows, row: number): number {
  return forced ? forced.offsets[row + 1]! - forced.offsets[row]! : 0;
}
