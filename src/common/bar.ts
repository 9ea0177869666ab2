/** A fraction -> a bar of text, redrawn in place in a terminal. */

const WIDTH = 30;

/** Returns a bar that is filled to `fraction`. */
export function barOf(fraction: number): string {
  const filled = Math.floor(fraction * WIDTH);
  return '█'.repeat(filled) + '░'.repeat(WIDTH - filled);
}

/** Sequences between which a terminal cuts what is wider than it: the rest would stand in a line of its own, which stays. */
const [CUT, WRAP] = ['\x1b[?7l', '\x1b[?7h'];

/** Returns the text that overwrites the previous line with these parts. */
export function drawnLine(parts: readonly string[], isLast: boolean): string {
  const line = parts.join('  ');
  return `\r\x1b[2K${isLast ? `${line}\n` : line && `${CUT}${line}${WRAP}`}`;
}
