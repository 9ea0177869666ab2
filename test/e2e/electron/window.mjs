// Stands in for the window: the template's own script on the elements of its page, then a question, one that is stopped, one while
// the model's process is killed, and another. Prints what the page shows.
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';

const app = process.cwd();
const require = createRequire(path.join(app, 'src/main.mjs'));
const elements = {};
const element = () => ({
  textContent: '',
  value: '',
  addEventListener(type, listener) {
    this[type] = listener;
  },
});
globalThis.window = globalThis;
globalThis.document = { getElementById: (id) => (elements[id] ??= element()) };
require(path.join(app, 'src/renderer.js'));
const { state, form, question, stop, answer } = elements;

const until = async (isThere) => {
  while (!isThere()) await new Promise((resolve) => setImmediate(resolve));
};
const ask = (text) => {
  question.value = text;
  return form.submit({ preventDefault: () => {} });
};

void (async () => {
  const shown = [];
  await until(() => !/^$|^load: |^download: /.test(state.textContent));
  if (state.textContent !== 'ready') return end([state.textContent]);
  await ask('What is the capital of Peru?');
  shown.push(answer.textContent);
  const stopped = ask('Tell me a story.');
  await until(() => answer.textContent.length > 10);
  stop.onclick();
  await stopped;
  shown.push(answer.textContent.split('\n').at(-1));
  const pids = engines();
  const killed = ask('Tell me a story.');
  await until(() => answer.textContent.length > 10);
  for (const pid of pids) process.kill(pid, 'SIGKILL');
  await killed;
  shown.push(answer.textContent.split('\n').at(-1));
  await ask('What is the capital of Peru?');
  end([...shown, answer.textContent]);
})();

function end(shown) {
  process.stdout.write(JSON.stringify(shown));
  globalThis.quit();
}

function engines() {
  if (process.platform === 'win32') return []; // the story is answered
  const table = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' });
  const rows = table.split('\n').map((line) => line.trim().split(/ +/));
  return rows
    .filter(
      ([, parent, ...args]) =>
        Number(parent) === process.pid && args.join(' ').includes('isolated-process.js'),
    )
    .map(([pid]) => Number(pid));
}
