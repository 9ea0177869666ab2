/** Progress of downloads and of loading -> a bar in a terminal, or occasional lines elsewhere. */
import { barOf, drawnLine, mib } from '../../common/index.ts';
import type { OnProgress } from '../../index.ts';
import { isWatched, type Terminal } from './terminal.ts';

/** Share of a file after which a line is written if the output is not a terminal. */
const LINE_SHARE = 0.1;
/** Milliseconds between two drawings of a bar. */
const REDRAW_MS = 50;

/** Draws downloads and loading on the error stream. Loading is drawn only in a terminal, where its last drawing erases the bar. */
export function modelProgress({ errors }: Terminal): OnProgress {
  const watched = isWatched(errors);
  let shown = 0;
  let drawnMs = 0;
  return (model, fraction, phase, download) => {
    const isDue = fraction === 1 || performance.now() - drawnMs >= REDRAW_MS;
    if (phase === 'load') {
      if (!watched || !isDue) return;
      drawnMs = performance.now();
      errors.write(fraction === 1 ? ERASED : drawnLine(['loading', barOf(fraction), model], false));
      return;
    }
    if (!download) return;
    if (fraction < shown) shown = 0; // the next file
    if (watched ? !isDue : fraction < shown + LINE_SHARE) return;
    shown = fraction;
    drawnMs = performance.now();
    const { bytes, totalBytes, bytesPerSecond, secondsLeft } = download;
    const facts = [
      model,
      ...(watched && totalBytes !== null ? [barOf(fraction)] : []),
      totalBytes === null ? mib(bytes) : `${mib(bytes)} of ${mib(totalBytes)}`,
      `${mib(bytesPerSecond)}/s`,
      ...(secondsLeft === null ? [] : [`${Math.ceil(secondsLeft)} s left`]),
    ];
    errors.write(watched ? drawnLine(facts, fraction === 1) : `${facts.join('  ')}\n`);
  };
}

/** Overwrites a drawn line with nothing. */
const ERASED = drawnLine([], false);
