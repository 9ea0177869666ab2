/** Experts of tokens, (tokens, layers, used) -> the field of a choice, and back. */
import type { RoutedExperts } from './generated/request-types.ts';

/** Returns the field `routed_experts`. */
export function toRoutedExperts(layers: number, used: number, ids: Uint16Array): RoutedExperts {
  return { layers, used, data: Buffer.from(ids.buffer, ids.byteOffset, ids.byteLength).toString('base64') };
}

/** Returns the ids of the field. If the text is not valid base64, returns those that can be decoded. */
export function routedExpertIds({ data }: RoutedExperts): Uint16Array {
  const bytes = Uint8Array.from(Buffer.from(data, 'base64'));
  return new Uint16Array(bytes.buffer, 0, Math.floor(bytes.length / 2));
}
