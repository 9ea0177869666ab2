// Stands in for the window: the template's own script on the elements of its page, then a question, one that is stopped, and one
// while the model process is killed. Prints what the page shows.
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
  while (!isThere()) await new Promise((resolve) => setTimeout(resolve, 10));
};
const ask = (text) => {
  question.value = text;
  return form.submit({ preventDefault: () => {} });
};

void (async () => {
  const shown = [];
  await until(() => state.textContent === 'ready');
  await ask('What is the capital of Peru?');
  shown.push(answer.textContent);
  const stopped = ask('Tell me a story.');
  await until(() => answer.textContent.length > 10);
  stop.onclick();
  await stopped;
  shown.push(answer.textContent.split('\n').at(-1));
  process.stdout.write(JSON.stringify(shown));
  globalThis.quit();
})();
