/** A list query -> a page of items, reading only the items of the page. */
import type { Page, ValidListQuery } from '../protocol/index.ts';
import { fault, throwFaults } from '../protocol/index.ts';
import { placeOf } from './ids.ts';

/**
 * Reads a page of the list `scope`. `places` are in ascending order; `read` returns null for an item to skip.
 * @throws OnpolicyError `INVALID_REQUEST` if the cursor belongs to another list
 */
export async function readPage<Item extends { readonly id: string }>(
  scope: string,
  places: readonly number[],
  query: ValidListQuery,
  read: (place: number) => Promise<Item | null>,
): Promise<Page<Item>> {
  const after = query.after === null ? null : cursorPlace(scope, query.after);
  const rest = placesAfter(places, after, query.order);
  const found: Item[] = [];
  while (found.length <= query.limit) {
    const some = take(rest, query.limit + 1 - found.length); // one more, for `has_more`
    if (some.length === 0) break;
    for (const item of await Promise.all(some.map(read))) if (item) found.push(item);
  }
  const data = found.slice(0, query.limit);
  return {
    object: 'list',
    data,
    has_more: found.length > query.limit,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  };
}

/** The place of a page's cursor. */
export function cursorPlace(scope: string, cursor: string): number {
  const place = placeOf(scope, cursor);
  if (place === null) throwFaults([fault(['after'], 'value', 'the id of an item of this list', cursor)]);
  return place!;
}

function take(places: Iterator<number>, count: number): number[] {
  const taken: number[] = [];
  for (let next = places.next(); !next.done; next = places.next()) {
    taken.push(next.value);
    if (taken.length === count) break;
  }
  return taken;
}

function* placesAfter(
  places: readonly number[],
  after: number | null,
  order: 'asc' | 'desc',
): Generator<number> {
  if (order === 'asc')
    for (let i = after === null ? 0 : countUpTo(places, after); i < places.length; i++) yield places[i]!;
  else
    for (let i = (after === null ? places.length : countUpTo(places, after - 1)) - 1; i >= 0; i--)
      yield places[i]!;
}

/** The number of places that are at most `limit`, by binary search. */
function countUpTo(places: readonly number[], limit: number): number {
  let low = 0;
  let high = places.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (places[middle]! <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
