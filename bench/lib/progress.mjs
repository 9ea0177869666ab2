// A fraction from 0 to 1 -> a bar on standard error when that is a terminal, else one line at the start and one at the end.

/** Shows how far a piece of work is. Call `update(fraction)` as often as you like, then `end()`. */
export function progressBar(label, stream = process.stderr) {
  const startedMs = performance.now();
  let shownPercent = -1;
  if (!stream.isTTY) stream.write(`${label} ...\n`);
  return {
    update(fraction) {
      const percent = Math.floor(100 * fraction);
      if (!stream.isTTY || percent === shownPercent) return;
      shownPercent = percent;
      const width = 30;
      const filled = Math.round(width * fraction);
      stream.write(`\r${label} [${'='.repeat(filled)}${' '.repeat(width - filled)}] ${percent} %`);
    },
    end() {
      const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
      stream.write(
        stream.isTTY ? `\r\x1b[K${label}: done in ${seconds} s\n` : `${label}: done in ${seconds} s\n`,
      );
    },
  };
}
