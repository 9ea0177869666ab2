/** A model and a number of tokens -> experts of all tokens and layers that its router would hardly choose. */
import type { TrainerInfo } from '../../src/rl/trainer.ts';
import { normals } from './tiny-model.ts';

export function drawnExperts({ routing }: TrainerInfo, tokens: number): Int32Array {
  const normal = normals(3);
  const { layers, used, count } = routing!;
  const draw = () => {
    const order = Array.from({ length: count }, (_, i) => ({ i, by: normal() })).sort((a, b) => a.by - b.by);
    return order.slice(0, used).map(({ i }) => i);
  };
  return Int32Array.from(Array.from({ length: tokens * layers }, draw).flat());
}
