/** Rows of a step, and other rows for some of its places -> rows with all columns in place. */
import type { SampledRows } from '../native/index.ts';

type Numbers = Uint8Array | Int32Array | Float32Array;
/** A list of numbers per row, all laid end to end. */
type Lists = { readonly offsets: Int32Array; readonly [column: string]: Numbers }; // offsets: (rows + 1)

/** Every column: one value per row, lists with their offsets, or a part of the lists of alternatives. */
const COLUMNS = {
  status: 'value',
  tokens: 'value',
  isFinal: 'value',
  logprobs: 'value',
  ranks: 'value',
  topOffsets: 'alternatives',
  topIds: 'alternatives',
  topLogprobs: 'alternatives',
  forced: 'lists',
  drafts: 'lists',
  candidates: 'lists',
} as const satisfies Record<keyof SampledRows, 'value' | 'alternatives' | 'lists'>;

type Columns = typeof COLUMNS;
type Named<Kind> = { [Name in keyof Columns]: Columns[Name] extends Kind ? Name : never }[keyof Columns];

function named<Kind extends Columns[keyof Columns]>(kind: Kind): Named<Kind>[] {
  return (Object.keys(COLUMNS) as (keyof Columns)[]).filter(
    (name): name is Named<Kind> => COLUMNS[name] === kind,
  );
}

const VALUES = named('value');
const LISTS = named('lists');

/** Rows of which those at `places` are replaced, in order, by the rows of `others`. Changes `rows`. */
export function replaceRows(rows: SampledRows, places: readonly number[], others: SampledRows): SampledRows {
  for (const [from, to] of places.entries()) for (const name of VALUES) rows[name][to] = others[name][from]!;
  const sources = new Map(places.map((place, from) => [place, from]));
  const merge = <T extends Lists>(lists: T | undefined, given: T | undefined): T | undefined =>
    given ? replaceLists(lists, rows.tokens.length, sources, given) : lists;
  const top = merge(alternativesOf(rows), alternativesOf(others))!;
  const merged = LISTS.flatMap((name) => {
    const lists = merge(rows[name] as Lists | undefined, others[name] as Lists | undefined);
    return lists ? [[name, lists]] : [];
  });
  return {
    ...rows,
    topOffsets: top.offsets,
    topIds: top.ids,
    topLogprobs: top.logprobs,
    ...(Object.fromEntries(merged) as Pick<SampledRows, 'forced' | 'candidates'>),
  };
}

function alternativesOf({ topOffsets: offsets, topIds: ids, topLogprobs: logprobs }: SampledRows) {
  return { offsets, ids, logprobs };
}

/** Lists of `count` rows: of those in `sources` from `others`, of the rest from `lists`. */
function replaceLists<T extends Lists>(
  lists: T | undefined,
  count: number,
  sources: ReadonlyMap<number, number>,
  others: T,
): T {
  const parts = Array.from({ length: count }, (_, row) => {
    const other = sources.get(row);
    const [from, at] = other === undefined ? [lists, row] : [others, other];
    return { from, start: from?.offsets[at] ?? 0, end: from?.offsets[at + 1] ?? 0 };
  });
  const offsets = new Int32Array(count + 1);
  for (const [row, { start, end }] of parts.entries()) offsets[row + 1] = offsets[row]! + end - start;
  const merged: Record<string, Numbers> = { offsets };
  for (const [name, column] of Object.entries<Numbers>(others)) {
    if (name === 'offsets') continue;
    const values = new (column.constructor as new (length: number) => Numbers)(offsets[count]!);
    for (const [row, { from, start, end }] of parts.entries())
      if (from) values.set(from[name]!.subarray(start, end), offsets[row]);
    merged[name] = values;
  }
  return merged as T;
}
