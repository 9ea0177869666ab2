/** Keys of a list and a cursor -> a page, of which only the items are read. */

/** Reads a page. `keys` are in ascending order; `after` is the key before the page; `read` returns null for an item to skip. */
export async function pageOf<Key extends number | string, Item extends { readonly id: string }>(
  keys: readonly Key[],
  { after, limit, order }: { after: Key | null; limit: number; order: 'asc' | 'desc' },
  read: (key: Key) => Promise<Item | null>,
) {
  const rest = keys.filter((key) => after === null || (order === 'asc' ? key > after : key < after));
  if (order === 'desc') rest.reverse();
  const found: Item[] = [];
  for (let at = 0; at < rest.length && found.length <= limit; ) {
    const some = rest.slice(at, at + limit + 1 - found.length); // one more, for `has_more`
    at += some.length;
    for (const item of await Promise.all(some.map(read))) if (item) found.push(item);
  }
  const data = found.slice(0, limit);
  return {
    object: 'list' as const,
    data,
    has_more: found.length > limit,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  };
}

/** Yields all items of a list that is read in pages. */
export async function* allOf<Item>(
  read: (after: string | null) => Promise<{
    readonly data: readonly Item[];
    readonly has_more: boolean;
    readonly last_id: string | null;
  }>,
): AsyncGenerator<Item> {
  for (let after: string | null = null; ; ) {
    const { data, has_more, last_id } = await read(after);
    yield* data;
    if (!has_more || last_id === null) return;
    after = last_id;
  }
}
