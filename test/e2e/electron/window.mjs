// Stands in for the page: a question, an answer that is stopped, one while the model's process is killed, another question, ratings, a
// step of training, and one back. Prints what the page would show.
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';

const { assistant, app } = globalThis;
const shown = {};
let coming = '';
let ending = null;
assistant.on('answer', ({ chunk, end }) => {
  coming += chunk?.choices[0]?.delta.content ?? '';
  ending = end ?? null;
});
let { learning } = await assistant.state();
assistant.on('state', (state) => (learning = state.learning));

const until = async (isThere) => {
  while (!isThere()) await new Promise((resolve) => setImmediate(resolve));
};

void (async () => {
  const { problem } = await assistant.state();
  if (problem) return end({ problem });
  const { id } = await assistant.create();
  const ask = async (text, of = id) => {
    const turns = [...(await assistant.open(of)).turns, { role: 'user', text }];
    await assistant.save(of, turns);
    coming = '';
    await assistant.ask(randomUUID(), of, messagesOf(turns));
    await assistant.save(of, [...turns, { role: 'assistant', text: coming }]);
    return ending.error ?? coming;
  };
  /** Answers are sampled: the right one comes nearly always. */
  const capital = async () => {
    let answer = '';
    for (let tries = 0; tries < 5 && !answer.includes('Lima'); tries++) {
      const { id: other } = await assistant.create();
      answer = await ask('What is the capital of Peru?', other);
      await assistant.remove(other);
    }
    return answer;
  };
  shown.answer = await capital();

  const stopped = ask('Tell me a story.');
  await until(() => coming.length > 10);
  await assistant.stop();
  shown.stopped = await stopped;

  const pids = engines();
  const killed = ask('Tell me a story.');
  await until(() => coming.length > 10);
  for (const pid of pids) process.kill(pid, 'SIGKILL');
  shown.killed = await killed;
  shown.again = await capital();

  for (let i = 0; i < 4; i++) {
    const answer = await ask('Tell me a story.');
    const messages = messagesOf((await assistant.open(id)).turns.slice(0, -1));
    await assistant.rate({ id: randomUUID(), messages, answer, rating: i % 2 ? 1 : -1 });
  }
  await assistant.learn();
  shown.learned = learning;
  shown.report = await assistant.report();
  await assistant.undo();
  shown.undone = learning;
  app.emit('second-instance');
  shown.focused = globalThis.focused;
  shown.titles = (await assistant.state()).conversations.map(({ title }) => title);
  end(shown);
})();

function messagesOf(turns) {
  return turns.filter(({ text }) => text !== '').map(({ role, text }) => ({ role, content: text }));
}

function end(result) {
  process.stdout.write(JSON.stringify(result));
  app.quit();
}

function engines() {
  if (process.platform === 'win32') return []; // the story is answered
  const table = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' });
  const rows = table.split('\n').map((line) => line.trim().split(/ +/));
  return rows
    .filter(
      ([, parent, ...args]) =>
        Number(parent) === process.pid && args.join(' ').includes('isolation/program.js'),
    )
    .map(([pid]) => Number(pid));
}
