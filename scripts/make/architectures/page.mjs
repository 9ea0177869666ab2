// Measurements of architectures <-> rows of the table in docs/choosing-a-model.md.

const COLUMNS = ['answers', 'turns', 'drafts', 'kernels', 'deterministic', 'trainable'];
const ROW = /^\| `([\w.-]+)`(?: \| [^|]+){6} \|$/gm;

/** One line of the table. */
export function rowOf(name, { differences, ...result }) {
  const cells = { ...result, answers: differences.length === 0 };
  return `| \`${name}\` | ${COLUMNS.map((column) => (cells[column] === true ? 'yes' : cells[column] || '-')).join(' | ')} |`;
}

/** The lines of a page, by name. */
export function rowsIn(text) {
  return Object.fromEntries(Array.from(text.matchAll(ROW), ([row, name]) => [name, row]));
}

/** The page with other rows. */
export function withRows(text, rows) {
  const lines = text.split('\n');
  const first = lines.findIndex((line) => line.startsWith('| architecture |')) + 2;
  const count = Object.keys(rowsIn(text)).length;
  return lines.toSpliced(first, count, ...rows).join('\n');
}
