// Records `onpolicy chat` in a terminal -> docs/curves/chat.svg: the recording as a moving picture. Runs on Linux, whose `script` is the
// terminal. The model is one of the benchmarks: it computes as much as Qwen3-0.6B and repeats what it finds in its prompt.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureModel } from '../../bench/model/make.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const COLUMNS = 84;
const ROWS = 9;
const PAGE = 'docs/serving.md';
/** About 2,000 tokens, which are read in some steps. */
const PAGE_CHARACTERS = 6000;
const LIMITS = '--temperature 0 --max-tokens 7';
const QUESTION = 'You have read the whole page.';
/** Seconds that the picture plays, and those of them that its end stands. */
const [PLAYED, STILL] = [12, 3];
/** Screens that follow each other faster are one. */
const SHORTEST_S = 0.1;
const PROMPT = '> \u001b[3G';
const KEY_MS = 60;
const [CHARACTER, LINE, MARGIN] = [8.43, 20, 16];

const model = ensureModel({ shape: 'copying-0.6b' });
const name = path.basename(model);
const events = await record();
const frames = framesOf(events);
fs.writeFileSync(path.join(root, 'docs/curves/chat.svg'), draw(frames));
console.log(`${frames.length} screens of ${events.at(-1).at.toFixed(1)} s`);

/** Types a question when the prompt stands there, and Ctrl+D when it stands there again; returns what the terminal got, in seconds. */
async function record() {
  const page = fs.readFileSync(path.join(root, PAGE), 'utf8').slice(0, PAGE_CHARACTERS);
  const program = `stty cols ${COLUMNS} rows ${ROWS}; exec "$NODE" "$PROGRAM" chat --model ${name} ${LIMITS} --system "$PAGE"`;
  const variables = {
    NODE: process.execPath,
    PROGRAM: path.join(root, 'dist/apps/cli/index.js'),
    PAGE: page,
  };
  const terminal = spawn('script', ['-qec', program, '/dev/null'], {
    cwd: path.dirname(model),
    env: { ...process.env, ...variables, TERM: 'xterm' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve, reject) => terminal.on('error', reject).on('close', resolve));
  const startMs = performance.now();
  const events = [];
  let asked = false;
  let end = '';
  for await (const text of terminal.stdout.setEncoding('utf8')) {
    events.push({ at: (performance.now() - startMs) / 1000, text });
    end = (end + text).slice(-PROMPT.length);
    if (end !== PROMPT) continue;
    end = '';
    if (asked) terminal.stdin.end('\u0004');
    else void type(terminal.stdin);
    asked = true;
  }
  const code = await ended;
  if (code !== 0) throw new Error(`The chat ended with ${code}: ${events.map(({ text }) => text).join('')}`);
  return events;
}

async function type(input) {
  for (const key of `${QUESTION}\r`) {
    await new Promise((resolve) => setTimeout(resolve, KEY_MS));
    input.write(key);
  }
}

/** Output of a terminal -> the screens that it shows and when. */
function framesOf(events) {
  const screen = [`$ onpolicy chat --model ${name} ${LIMITS} \\`, '    --system "$(cat page.md)"', ''];
  const frames = [{ at: 0, lines: [...screen] }];
  let column = 0;
  const put = (text) => {
    const line = screen.at(-1);
    screen[screen.length - 1] =
      line.slice(0, column).padEnd(column) + text + line.slice(column + text.length);
    column += text.length;
    if (screen.at(-1).length <= COLUMNS) return;
    screen.splice(-1, 1, screen.at(-1).slice(0, COLUMNS), screen.at(-1).slice(COLUMNS));
    column -= COLUMNS;
  };
  const startOfLine = () => {
    column = 0;
  };
  const actions = {
    '\r': startOfLine,
    '\n': () => void screen.push(''),
    '\u001b[2K': () => screen.splice(-1, 1, ''),
    '\u001b[0J': () => screen.splice(-1, 1, screen.at(-1).slice(0, column)),
    '\u001b[1G': startOfLine,
    '\u001b[?7l': () => {}, // cuts lines: none here is too wide
    '\u001b[?7h': () => {},
  };
  for (const { at, text } of events) {
    for (const piece of text.match(/\u001b\[[?\d;]*[A-Za-z]|[\r\n]|[^\u001b\r\n]+/g) ?? []) {
      const place = /^\u001b\[(\d+)G$/.exec(piece);
      if (Object.hasOwn(actions, piece)) actions[piece]();
      else if (place) column = Number(place[1]) - 1;
      else if (piece.startsWith('\u001b')) throw new Error(`A sequence is unknown: ${JSON.stringify(piece)}`);
      else put(piece);
    }
    const lines = screen.slice(-ROWS);
    if (at - frames.at(-1).at < SHORTEST_S) frames.at(-1).lines = lines;
    else frames.push({ at, lines });
  }
  return frames;
}

function escapeXml(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}

/** Screens -> an SVG that shows them in turn, readable on light and dark pages; its last one where nothing may move. */
function draw(frames) {
  const scale = (PLAYED - STILL) / frames.at(-1).at;
  const share = (frame) => (frame ? (100 * frame.at * scale) / PLAYED : 100).toFixed(2);
  const width = Math.ceil(2 * MARGIN + COLUMNS * CHARACTER);
  const height = 2 * MARGIN + ROWS * LINE;
  const rules = frames.map((frame, i) => {
    const [from, to] = [share(frame), share(frames[i + 1])];
    const before = i === 0 ? '' : '0%{visibility:hidden}';
    const after = i === frames.length - 1 ? '' : `${to}%{visibility:hidden}`;
    return `@keyframes f${i}{${before}${from}%{visibility:visible}${after}}\n#f${i}{animation:f${i} ${PLAYED}s step-end infinite}`;
  });
  const groups = frames.map(({ lines }, i) => {
    const texts = lines.map(
      (line, row) => `<text x="${MARGIN}" y="${MARGIN + 14 + row * LINE}">${escapeXml(line)}</text>`,
    );
    return `<g id="f${i}"${i === frames.length - 1 ? '' : ' class="passing"'}>${texts.join('')}</g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="onpolicy chat">
<style>
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace;fill:#1f2328;white-space:pre}
.page{fill:#ffffff;stroke:#d1d9e0}
.passing{visibility:hidden}
@media (prefers-color-scheme:dark){text{fill:#f0f6fc}.page{fill:#0d1117;stroke:#3d444d}}
@media (prefers-reduced-motion:no-preference){
${rules.join('\n')}
}
</style>
<rect class="page" x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8"/>
${groups.join('\n')}
</svg>
`;
}
