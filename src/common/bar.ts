/** A share of something -> a bar of text, drawn over itself in a terminal. */

const WIDTH = 30;

/** A bar that is filled to `fraction`. */
export function barOf(fraction: number): string {
  const filled = Math.floor(fraction * WIDTH);
  return '█'.repeat(filled) + '░'.repeat(WIDTH - filled);
}

/** Parts of a line -> the text that draws it over the one before. */
export function drawnLine(parts: readonly string[], isLast: boolean): string {
  return `\r\x1b[2K${parts.join('  ')}${isLast ? '\n' : ''}`;
}
