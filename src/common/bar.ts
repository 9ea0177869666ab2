/** A fraction -> a bar of text, redrawn in place in a terminal. */

const WIDTH = 30;

/** Returns a bar that is filled to `fraction`. */
export function barOf(fraction: number): string {
  const filled = Math.floor(fraction * WIDTH);
  return '█'.repeat(filled) + '░'.repeat(WIDTH - filled);
}

/** Returns the text that overwrites the previous line with these parts. */
export function drawnLine(parts: readonly string[], isLast: boolean): string {
  return `\r\x1b[2K${parts.join('  ')}${isLast ? '\n' : ''}`;
}
