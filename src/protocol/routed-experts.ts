/** Experts of tokens, (tokens, layers, used) -> the field of a choice, and back. */
import type { RoutedExperts } from './generated/request-types.ts';

/** The field. */
export function toRoutedExperts(layers: number, used: number, ids: Uint16Array): RoutedExperts {
  return { layers, used, data: Buffer.from(ids.buffer, ids.byteOffset, ids.byteLength).toString('base64') };
}

/** Its numbers. Of text that is no base64, as many as there are. */
export function routedExpertIds({ data }: RoutedExperts): Uint16Array {
  const bytes = Uint8Array.from(Buffer.from(data, 'base64'));
  return new Uint16Array(bytes.buffer, 0, Math.floor(bytes.length / 2));
}
