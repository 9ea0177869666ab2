/** The experts of a trajectory's choice, and the experts of its model -> the faults that prevent their replay. */

import { NO_EXPERT } from '../../engine/native/index.ts';
import type { ErrorDetail } from '../../errors.ts';
import type { ExpertFacts } from '../../models/formats/index.ts';
import { fault, routedExpertIds } from '../../protocol/index.ts';
import type { TrajectoryChoice } from '../index.ts';

/** If choices may have no ids, they may have no experts. */
export function routingFaults(
  { routed_experts: given, token_ids, prompt_token_ids }: TrajectoryChoice,
  loc: readonly string[],
  allowed: boolean,
  { layers, used, count }: ExpertFacts,
): readonly ErrorDetail[] {
  const at = [...loc, 'routed_experts'];
  if (!given) {
    const expected = 'the experts of its tokens, which completions with "return_routed_experts": true have';
    return allowed ? [] : [fault(at, 'missing', expected, given)];
  }
  if (given.layers !== layers)
    return [
      fault([...at, 'layers'], 'value', `the ${layers} layers of the model with experts`, given.layers),
    ];
  if (given.used !== used)
    return [
      fault([...at, 'used'], 'value', `the ${used} experts that a token of the model takes`, given.used),
    ];
  const ids = routedExpertIds(given);
  const width = layers * used;
  const answer = token_ids?.length ?? 0;
  const tokens = prompt_token_ids ? prompt_token_ids.length + answer : null;
  const expected =
    tokens === null
      ? `a multiple of ${width} numbers`
      : `${tokens * width} numbers, ${width} of each of ${tokens} tokens`;
  if (
    tokens === null ? ids.length % width !== 0 || ids.length < answer * width : ids.length !== tokens * width
  )
    return [fault([...at, 'data'], 'length', expected, `${ids.length} numbers`)];
  const wrong = wrongExpert(ids, used, count);
  return wrong === null
    ? []
    : [
        fault(
          [...at, 'data'],
          'value',
          `${used} different numbers below ${count} for each token and layer, or ${NO_EXPERT} for all of them`,
          wrong,
        ),
      ];
}

/** Returns the first number that is out of range or repeated, or null if there is none. */
function wrongExpert(ids: Uint16Array, used: number, count: number): number | null {
  for (let first = 0; first < ids.length; first += used) {
    const chosen = ids.subarray(first, first + used);
    if (chosen.every((id) => id === NO_EXPERT)) continue;
    for (const [i, id] of chosen.entries()) if (id >= count || chosen.indexOf(id) !== i) return id;
  }
  return null;
}
