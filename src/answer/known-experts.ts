/** `return_routed_experts` -> an error if the engine's graphs name the choice of experts in an unknown way. The first request detects it. */
import { isEngineBroken } from '../engine/native/index.ts';
import { errorAt } from '../errors.ts';

/** @throws OnpolicyError `UNSUPPORTED` if the names of the experts' tensors are not known */
export function requireKnownExperts(): void {
  if (!isEngineBroken('expertNames')) return;
  throw errorAt(
    'return_routed_experts',
    'UNSUPPORTED',
    'not with this release of the engine, which names the choice of experts in another way: see stats().engine',
  );
}
