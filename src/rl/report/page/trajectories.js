/** Trajectories -> a list of groups and the chosen group side by side. Parts are unpacked on demand. */
import { conversationCard, entryParts, failureCard } from './conversation.js';
import { byId, make, short } from './elements.js';

/** The current choice. */
const chosen = {
  split: '',
  coloring: 'advantage',
  least: Number.NEGATIVE_INFINITY,
  most: Number.POSITIVE_INFINITY,
  group: -1,
};
/** @type {Map<number, Promise<any>>} */
const unpacked = new Map();
/** Draws the chosen group again. */
let redraw = () => {};

const LEGENDS = {
  advantage: [
    'worse than its group',
    'better',
    'linear-gradient(90deg, rgba(var(--bad), .5), transparent, rgba(var(--good), .5))',
  ],
  logprob: ['likely', 'unlikely', 'linear-gradient(90deg, transparent, rgba(var(--rare), .6))'],
};

/** @param {any[]} splits */
export function drawTrajectories(splits) {
  unpacked.clear();
  if (!splits.some(({ split }) => split === chosen.split)) chosen.split = splits.at(-1)?.split ?? '';
  const current = () => splits.find(({ split }) => split === chosen.split);
  drawFilter(splits, () => {
    chosen.group = -1;
    drawGroups(current());
  });
  drawGroups(current());
}

/** @param {any[]} splits @param {() => void} changed */
function drawFilter(splits, changed) {
  const split = make(
    'select',
    { id: 'split' },
    ...splits.map((one) => make('option', { value: one.split }, `${one.split} (${one.trajectories})`)),
  );
  split.value = chosen.split;
  split.onchange = () => {
    chosen.split = split.value;
    changed();
  };
  const coloring = make(
    'select',
    { id: 'coloring' },
    ...[
      ['advantage', 'advantage'],
      ['logprob', 'log-probability'],
      ['none', 'nothing'],
    ].map(([value, label]) => make('option', { value }, label ?? '')),
  );
  coloring.value = chosen.coloring;
  const legend = make('span', { className: 'legend' });
  const drawLegend = () => {
    const [low, high, background] = LEGENDS[/** @type {'advantage'} */ (chosen.coloring)] ?? [];
    legend.replaceChildren(
      ...(background
        ? [low ?? '', make('span', { className: 'swatch', style: `background:${background}` }), high ?? '']
        : []),
    );
  };
  drawLegend();
  coloring.onchange = () => {
    chosen.coloring = coloring.value;
    drawLegend();
    redraw();
  };
  const bound = (/** @type {'least' | 'most'} */ name, /** @type {number} */ none) => {
    const input = make('input', {
      id: name,
      type: 'number',
      step: 'any',
      value: Number.isFinite(chosen[name]) ? chosen[name] : '',
    });
    input.oninput = () => {
      chosen[name] = input.value === '' ? none : Number(input.value);
      changed();
    };
    return input;
  };
  const field = (/** @type {string} */ label, /** @type {Node} */ input) =>
    make('label', {}, `${label} `, input);
  byId('filter').onsubmit = (/** @type {Event} */ event) => event.preventDefault();
  byId('filter').replaceChildren(
    field('Split', split),
    field('Reward from', bound('least', Number.NEGATIVE_INFINITY)),
    field('to', bound('most', Number.POSITIVE_INFINITY)),
    field('Colour tokens by', coloring),
    legend,
    make('span', { id: 'count', className: 'quiet', role: 'status' }),
  );
}

/** @param {any} split */
function drawGroups(split) {
  const inRange = (/** @type {number} */ reward) => reward >= chosen.least && reward <= chosen.most;
  const groups = (split?.groups ?? [])
    .filter((/** @type {any} */ { rewards }) => rewards.length === 0 || rewards.some(inRange))
    .reverse();
  const count = groups.reduce(
    (/** @type {number} */ sum, /** @type {any} */ { rewards }) => sum + rewards.filter(inRange).length,
    0,
  );
  byId('count').textContent = split
    ? `${count} of ${split.trajectories} trajectories in ${groups.length} groups, newest first`
    : 'There are none yet.';
  const list = byId('groups');
  const options = groups.map((/** @type {any} */ group, /** @type {number} */ i) => {
    const { rewards, step, failures } = group;
    const mean =
      rewards.reduce((/** @type {number} */ sum, /** @type {number} */ reward) => sum + reward, 0) /
      rewards.length;
    return make(
      'div',
      {
        className: 'option',
        id: `option-${i}`,
        role: 'option',
        'aria-selected': false,
        onclick: () => choose(i),
      },
      `Step ${step}, group ${group.group}`,
      make(
        'div',
        { className: 'quiet' },
        `${rewards.length} trajectories${rewards.length > 0 ? `, mean ${short(mean)}` : ''}${failures > 0 ? `, ${failures} failed` : ''}`,
      ),
    );
  });
  list.replaceChildren(...options);
  byId('group').replaceChildren();
  const current = () => groups.findIndex((/** @type {any} */ { group }) => group === chosen.group);
  const choose = (/** @type {number} */ i) => {
    const group = groups[i];
    if (!group) return;
    options[current()]?.setAttribute('aria-selected', 'false');
    chosen.group = group.group;
    options[i].setAttribute('aria-selected', 'true');
    list.setAttribute('aria-activedescendant', `option-${i}`);
    scrollTo(list, options[i]);
    showGroup(group, inRange).catch((error) => byId('group').replaceChildren(String(error)));
  };
  list.onkeydown = (/** @type {KeyboardEvent} */ event) => {
    const at = current();
    const target = {
      ArrowDown: at + 1,
      ArrowUp: Math.max(0, at - 1),
      PageDown: Math.min(at + 10, groups.length - 1),
      PageUp: Math.max(0, at - 10),
      Home: 0,
      End: groups.length - 1,
    }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    choose(target);
  };
  choose(Math.max(0, current()));
}

/** Scrolls the list alone, not the page. @param {any} list @param {any} option */
function scrollTo(list, option) {
  const top = option.offsetTop - list.offsetTop;
  if (top < list.scrollTop) list.scrollTop = top;
  const below = top + option.offsetHeight - list.clientHeight;
  if (below > list.scrollTop) list.scrollTop = below;
}

/** @param {any} group @param {(reward: number) => boolean} inRange */
async function showGroup(group, inRange) {
  const holder = byId('group');
  const { trajectories, failures } = (await unpack(group.part))[group.place];
  if (chosen.group !== group.group) return; // the choice has changed
  const shared = sharedEntries(trajectories);
  const draw = () => {
    const cards = trajectories.flatMap((/** @type {any} */ trajectory, /** @type {number} */ i) => {
      const options = { coloring: chosen.coloring, from: shared.length, title: `trajectory ${i + 1}` };
      return inRange(trajectory.reward) ? [conversationCard(trajectory, options)] : [];
    });
    const start = make(
      'details',
      { className: 'card shared', open: true },
      make('summary', {}, 'Shared start'),
    );
    for (const entry of shared) start.append(...entryParts(entry, 0, 'none'));
    holder.replaceChildren(
      make(
        'h3',
        {},
        `Step ${group.step}, group ${group.group}: ${cards.length} of ${trajectories.length} trajectories`,
      ),
      ...(shared.length > 0 ? [start] : []),
      make('div', { className: 'cards' }, ...cards, ...failures.map(failureCard)),
    );
  };
  redraw = draw;
  draw();
}

/** The common first messages of all trajectories. @param {any[]} trajectories */
function sharedEntries(trajectories) {
  const [first = [], ...rest] = trajectories.map(({ entries }) => entries);
  const isShared = (/** @type {any} */ entry, /** @type {number} */ i) =>
    entry.text !== undefined &&
    rest.every((entries) => entries[i]?.role === entry.role && entries[i]?.text === entry.text);
  const end = first.findIndex((/** @type {any} */ entry, /** @type {number} */ i) => !isShared(entry, i));
  return first.slice(0, end < 0 ? first.length : end);
}

/** @param {number} part @returns {Promise<any>} */
function unpack(part) {
  let content = unpacked.get(part);
  if (!content) {
    const bytes = Uint8Array.from(atob(byId(`part-${part}`).textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    content = new Response(stream).json();
    unpacked.set(part, content);
  }
  return content;
}
