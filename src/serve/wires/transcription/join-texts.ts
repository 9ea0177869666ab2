/** Transcripts of overlapping windows -> one text. */

/** Most words at the end of a window that may be repeated at the start of the next one. */
const MOST_SHARED = 40;
/** Fewest equal words that count as a repetition, because a single one may be chance. */
const LEAST_SHARED = 2;

type Word = { readonly text: string; readonly start: number; readonly end: number };

const SEGMENTER = new Intl.Segmenter(undefined, { granularity: 'word' });

/**
 * Returns the end of the first text and the start of the second at which they are joined: behind the longest run of words that ends the one
 * and begins the other. Words around the run were cut by the windows. Without such a run both texts are taken whole.
 */
export function joint(before: string, after: string): { readonly end: number; readonly start: number } {
  const tail = wordsOf(before).slice(-MOST_SHARED);
  const head = wordsOf(after).slice(0, MOST_SHARED);
  let best = { length: LEAST_SHARED - 1, end: before.length, start: 0 };
  for (const i of tail.keys())
    for (const j of head.keys()) {
      let length = 0;
      while (i + length < tail.length && tail[i + length]!.text === head[j + length]?.text) length += 1;
      if (length > best.length)
        best = { length, end: tail[i + length - 1]!.end, start: head[j + length - 1]!.end };
    }
  return { end: best.end, start: best.start };
}

function wordsOf(text: string): Word[] {
  return [...SEGMENTER.segment(text)]
    .filter(({ isWordLike }) => isWordLike)
    .map(({ segment, index }) => ({
      text: segment.toLocaleLowerCase(),
      start: index,
      end: index + segment.length,
    }));
}
