/** The window: conversations, the answer as it comes, ratings, models, and what was learned. */
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
let isAsking = false;

assistant.on('state', show);
/** Returns the answer as far as it came; before its first text, a bar for the share of the conversation that is read. */
const comingOf = (answer, read) =>
  answer === '' && read !== null
    ? [make('progress', '', { value: read }), ` ${percent(read)} read`]
    : [answer || '…'];
assistant.on('text', ({ id, answer, read }) => {
  if (id === conversation.id) byId('coming')?.replaceChildren(...comingOf(answer, read));
  scroll();
});
show(await assistant.state());
showMessages();

byId('create').onclick = async () => open(await assistant.create());
byId('stop').onclick = () => assistant.stop();
byId('learn').onclick = () => assistant.learn();
byId('undo').onclick = () => assistant.undo();
byId('report').onclick = () => assistant.report();
byId('question').onkeydown = (event) => {
  if (event.key !== 'Enter' || event.shiftKey) return;
  event.preventDefault();
  byId('form').requestSubmit();
};

byId('form').onsubmit = async (event) => {
  event.preventDefault();
  const text = byId('question').value.trim();
  if (text === '' || isAsking) return;
  byId('question').value = '';
  setAsking(true);
  const { id } = conversation;
  conversation.messages.push({ role: 'user', content: text });
  showMessages(make('li', '…', { id: 'coming' }));
  const { conversation: now, error } = await assistant.ask(id, text);
  setAsking(false);
  if (id !== conversation.id) return;
  open(now);
  if (error) byId('messages').append(make('li', [`${error} `, button('Try again', () => again(text))]));
  scroll();
};

function again(text) {
  byId('question').value = text;
  byId('form').requestSubmit();
}

function setAsking(asks) {
  isAsking = asks;
  byId('send').hidden = asks;
  byId('stop').hidden = !asks;
}

function open(now) {
  conversation = now;
  showMessages();
}

function showMessages(...more) {
  byId('messages').replaceChildren(...conversation.messages.map(messageOf), ...more);
  scroll();
}

function messageOf({ role, content, id, rating }) {
  const item = make('li', content, { className: role });
  if (id === undefined) return item;
  const rate = (text, value, title) => {
    const onclick = async () => open(await assistant.rate(conversation.id, id, rating === value ? 0 : value));
    const element = button(text, onclick, { title });
    element.setAttribute('aria-pressed', rating === value);
    return element;
  };
  item.append(
    make('div', [rate('Good', 1, 'More like this'), rate('Bad', -1, 'Less like this')], {
      className: 'rating',
    }),
  );
  return item;
}

function scroll() {
  byId('messages').lastElementChild?.scrollIntoView({ block: 'end' });
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
