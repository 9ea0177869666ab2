// `npm start` -> docs/start.svg: the beginning of what it prints, as a terminal shows it.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
/** The heading that is not shown any more. */
const END = /^How sure/;
const LINE = 19;
const LETTER = 8.45;
const COLUMNS = 108;
/** The demo's styles by their codes, and how they look. */
const STYLES = { 1: 'b', 2: 'd', 32: 'g' };
const CSS = `text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#e6edf3;white-space:pre}
.b{font-weight:700;fill:#fff}.d{fill:#8b949e}.g{fill:#7ee787}`;

const { stdout, status } = spawnSync(process.execPath, ['dist/demo/index.js'], {
  cwd: root,
  encoding: 'utf8',
  env: { ...process.env, FORCE_COLOR: '1' },
});
if (status !== 0) throw new Error('npm start fails');
const printed = ['\u001b[2m$ npm start\u001b[0m', ...stdout.split('\n')];
const end = printed.findIndex((line) => END.test(plain(line)));
const lines = printed.slice(0, end - 1).flatMap(wrapped); // without the blank line before the heading
const height = (lines.length + 1) * LINE;
const width = Math.ceil(COLUMNS * LETTER + 40);
const rows = lines.map((line, i) => `<text x="20" y="${(i + 1) * LINE + 6}">${spans(line)}</text>`);
const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">
<title>What npm start prints</title>
<style>${CSS}</style>
<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>
${rows.join('\n')}
</svg>
`;
fs.writeFileSync(path.join(root, 'docs', 'start.svg'), svg);

function plain(line) {
  return line.replaceAll(/\u001b\[\d+m/g, '');
}

/** A line that is too long, which has one style, in several. */
function wrapped(line) {
  const text = plain(line);
  if (text.length <= COLUMNS) return [line];
  const [style = ''] = /\u001b\[\d+m/.exec(line) ?? [];
  const cut = text.lastIndexOf(' ', COLUMNS);
  return [`${style}${text.slice(0, cut)}`, ...wrapped(`${style}  ${text.slice(cut + 1)}`)];
}

function spans(line) {
  return line
    .split(/(?=\u001b\[\d+m)/)
    .map((part) => {
      const [, code, text] = /^(?:\u001b\[(\d+)m)?(.*)$/s.exec(part);
      const safe = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
      return STYLES[code] && safe ? `<tspan class="${STYLES[code]}">${safe}</tspan>` : safe;
    })
    .join('');
}
