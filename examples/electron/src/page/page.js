/** The window: the chat page of the library, and beside it conversations, ratings, models, and what was learned. */
import { Chat, toMessages } from '../../node_modules/onpolicy/dist/serve/page/chat.js';

const { assistant } = window;
const byId = (id) => document.getElementById(id);
/** An element with its text or children, and with properties. */
function make(tag, content = '', properties = {}) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...[content].flat());
  return element;
}
const button = (text, onclick, properties = {}) =>
  make('button', text, { type: 'button', onclick, ...properties });
const percent = (fraction) => `${Math.round(fraction * 100)} %`;

let conversation = await assistant.create();
/** Streams of answers that come, by key. */
const coming = new Map();

const chat = new Chat(byId('chat'), {
  greeting: 'What would you like to know?',
  answer,
  changed: keep,
  buttons: ratingOf,
});
assistant.on('state', show);
assistant.on('answer', ({ key, chunk, end }) => {
  const stream = coming.get(key);
  if (chunk) return stream.enqueue(chunk);
  coming.delete(key);
  if (end.error !== null) return stream.error(new Error(end.error));
  stream.close();
  const left = end.dropped === 1 ? 'The oldest message was' : `The ${end.dropped} oldest messages were`;
  byId('notice').textContent =
    end.dropped > 0 ? `${left} left out of this question: the context is full.` : '';
});
show(await assistant.state());
chat.focus();

byId('create').onclick = async () => open(await assistant.create());
byId('learn').onclick = () => assistant.learn();
byId('undo').onclick = () => assistant.undo();
byId('report').onclick = () => assistant.report();

/** Returns the chunks of an answer to the turns. */
function answer(turns, signal) {
  const key = crypto.randomUUID();
  const chunks = new ReadableStream({
    start(stream) {
      coming.set(key, stream);
    },
  });
  signal.addEventListener('abort', () => assistant.stop());
  void assistant.ask(key, conversation.id, toMessages(turns));
  return chunks;
}

function keep(turns) {
  conversation.turns = turns;
  if (turns.length > 0) void assistant.save(conversation.id, turns);
}

/** Shows another conversation. What has come of a running answer stays in the one that is left. */
function open(next) {
  if (chat.isBusy) keep(conversation.turns);
  conversation = next;
  byId('notice').textContent = '';
  chat.setTurns(next.turns);
  chat.focus();
}

/** Returns the buttons that rate an answer, which the model learns from. */
function ratingOf(turn) {
  if (turn.text === '') return [];
  const rate = (text, value, title) => {
    const onclick = () => {
      turn.id ??= crypto.randomUUID();
      turn.rating = turn.rating === value ? 0 : value;
      keep(conversation.turns);
      const before = conversation.turns.slice(0, conversation.turns.indexOf(turn));
      const messages = toMessages(before).map(({ role, content }) => ({ role, content }));
      void assistant.rate({ id: turn.id, messages, answer: turn.text, rating: turn.rating });
      chat.refresh();
    };
    const element = button(text, onclick, { title, className: 'rating' });
    element.setAttribute('aria-pressed', turn.rating === value);
    return element;
  };
  return [rate('Good', 1, 'More like this'), rate('Bad', -1, 'Less like this')];
}

function show({ conversations, models, model, topics, learning, problem }) {
  byId('problem').textContent = problem ?? '';
  byId('conversations').replaceChildren(
    ...conversations.map(({ id, title, topic }) => {
      const remove = async () => {
        await assistant.remove(id);
        if (id === conversation.id) open(await assistant.create());
      };
      const item = make('li', [
        button(title, async () => open(await assistant.open(id))),
        button('×', remove, { title: 'Delete this conversation' }),
        ...(topic ? [topicOf(id, topic, topics)] : []),
      ]);
      item.setAttribute('aria-current', id === conversation.id);
      return item;
    }),
  );
  byId('models').replaceChildren(...models.map((one) => modelOf(one, model)));
  showLearning(learning);
}

/** Returns a list of topics with that of the conversation selected. Selecting another one is a correction that the model learns. */
function topicOf(id, topic, topics) {
  const options = topics.map((value) => make('option', value, { value, selected: value === topic }));
  const select = make('select', options, { title: 'What it is about' });
  select.onchange = () => assistant.file(id, select.value);
  return select;
}

function modelOf({ id, name, about, gigabytes, memory, fits, state, fraction, error }, chosen) {
  const item = make('li', make('strong', name), { className: fits ? '' : 'too-large' });
  item.setAttribute('aria-current', id === chosen);
  const size = gigabytes > 0 ? `${gigabytes} GB to download, ${memory} GB of memory` : '';
  item.append(
    make('small', [about, size, fits ? '' : 'Too large for this computer'].filter(Boolean).join('. ')),
  );
  if (state === 'downloading' || state === 'paused') {
    item.append(make('progress', '', { value: fraction }));
    item.append(
      make('small', `${(fraction * gigabytes).toFixed(2)} of ${gigabytes} GB, ${percent(fraction)}`),
    );
  }
  if (error) item.append(make('small', error));
  const download = (text) => button(text, () => assistant.download(id));
  if (state === 'absent') item.append(download('Download'));
  if (state === 'downloading') item.append(button('Pause', () => assistant.pause(id)));
  if (state === 'paused') item.append(download('Go on'));
  if (state === 'failed') item.append(download('Try again'));
  if (state === 'here' && id !== chosen) item.append(button('Use', () => assistant.choose(id)));
  if (state !== 'absent' && gigabytes > 0)
    item.append(
      ' ',
      button('Delete', () => assistant.removeModel(id)),
    );
  return item;
}

function showLearning(learning) {
  for (const id of ['learn', 'undo', 'report']) byId(id).disabled = !learning || learning.isTraining;
  if (!learning) return;
  const { isTraining, waiting, needed, steps, problem } = learning;
  const plan = `${waiting} of ${needed} ratings for the next step. It learns while nobody uses this computer.`;
  byId('learning').textContent = isTraining ? 'Learning ...' : (problem ?? plan);
  byId('learn').disabled ||= waiting === 0;
  byId('undo').disabled ||= steps.length === 0;
  byId('report').disabled ||= steps.length === 0;
  showCurve(steps.map(({ liked }) => liked));
  const last = steps.at(-1);
  byId('steps').replaceChildren(
    ...(last
      ? [
          make(
            'p',
            `Step ${steps.length}, from ${last.ratings} ratings, ${percent(last.liked)} of them good. You asked: ${last.question}`,
          ),
          make('small', 'Before'),
          make('blockquote', last.before),
          make('small', 'After'),
          make('blockquote', last.after),
        ]
      : []),
  );
}

function showCurve(shares) {
  const svg = (tag, attributes) => {
    const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const points = shares.map((share, i) => [6 + (188 * i) / Math.max(shares.length - 1, 1), 56 - 52 * share]);
  byId('curve').replaceChildren(
    svg('polyline', { points: points.map((point) => point.join()).join(' ') }),
    ...points.map(([cx, cy]) => svg('circle', { cx, cy, r: 2.5 })),
  );
}
