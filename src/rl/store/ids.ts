/** A position in a list <-> an id that encodes it, so that a page can continue after a deleted item. */
import { createHash, randomBytes } from 'node:crypto';
import { fault, throwFaults } from '../../protocol/index.ts';

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const TAG_MASK = 0x3fff_ffff; // 30 bits

/** Returns true if a text has the form of an id. */
export function isId(text: string): boolean {
  return ID.test(text);
}

/**
 * A UUID for the item at `place` (0 to 2^48 - 1) of the list `scope`: 48 bits of place, 30 bits of the list's hash, the
 * rest random.
 */
export function placedId(scope: string, place: number, random: Uint8Array = randomBytes(16)): string {
  const bytes = Buffer.from(random.subarray(0, 16));
  bytes.writeUIntBE(place, 0, 6);
  bytes[6] = (bytes[6]! & 0x0f) | 0x40; // version 4: some parsers accept no newer one
  bytes.writeUInt32BE((0x8000_0000 | tagOf(scope)) >>> 0, 8);
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** The place that an id encodes, also of a deleted item; null if the id belongs to another list. */
export function placeOf(scope: string, id: string): number | null {
  if (!isId(id)) return null;
  const bytes = Buffer.from(id.replaceAll('-', ''), 'hex');
  return (bytes.readUInt32BE(8) & TAG_MASK) === tagOf(scope) ? bytes.readUIntBE(0, 6) : null;
}

/** The place of a page's cursor. @throws OnpolicyError `INVALID_REQUEST` if it belongs to another list */
export function cursorPlace(scope: string, cursor: string): number {
  const place = placeOf(scope, cursor);
  if (place === null) throwFaults([fault(['after'], 'value', 'the id of an item of this list', cursor)]);
  return place!;
}

/** Replaces the cursor of a query by its place. */
export function byPlace<Query extends { readonly after: string | null }>(scope: string, query: Query) {
  return { ...query, after: query.after === null ? null : cursorPlace(scope, query.after) };
}

function tagOf(scope: string): number {
  return createHash('sha256').update(scope).digest().readUInt32BE(0) & TAG_MASK;
}
