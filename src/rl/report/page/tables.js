/** Data of a run -> tables of checkpoints and facts. */
import { byId, make, short } from './elements.js';

const FIRST = [
  'train/reward',
  'loss/train',
  'loss/entropy',
  'loss/kl_div',
  'train/clip_fraction',
  'train/probs_corr',
];

/** Rows of the table of checkpoints that are built at a time. The next ones follow when the end comes into view. */
const ROWS = 50;

/** @param {any} data */
export function drawTables(data) {
  const { model, run, checkpoints, other } = data;
  byId('name').textContent = model.name ?? model.id;
  byId('facts').textContent =
    `step ${model.step} · ${model.base_model} · ${model.id} · made ${new Date(data.made * 1000).toLocaleString()}` +
    (other ? ` · beside ${other.model.name ?? other.model.id}, step ${other.model.step} (dashed)` : '');
  const holder = byId('checkpoints');
  holder.tabIndex = 0; // makes it scrollable by keyboard
  const had = holder.querySelectorAll('tbody tr').length; // as many as before stay, so that a newer page keeps its place
  holder.replaceChildren(
    checkpoints.length === 0
      ? make('p', { className: 'hint' }, 'There are none.')
      : checkpointTable(holder, checkpoints, Math.max(ROWS, had)),
    ...(data.has_more_checkpoints ? [make('p', { className: 'hint' }, 'Older ones are left out.')] : []),
  );
  const facts = { id: model.id, 'base model': model.base_model, ...run.system, ...run.config };
  const rows = Object.entries(facts).map(([name, value]) => {
    const shown = typeof value === 'object' ? JSON.stringify(value) : String(value);
    return make('tr', {}, make('th', { scope: 'row' }, name), make('td', { className: 'long' }, shown));
  });
  byId('run').replaceChildren(make('table', { className: 'plain' }, ...rows));
}

/**
 * The table with its first rows. It grows as its holder is scrolled.
 * @param {any} holder @param {any[]} checkpoints @param {number} first
 */
function checkpointTable(holder, checkpoints, first) {
  const present = new Set(checkpoints.flatMap(({ metrics }) => Object.keys(metrics)));
  const columns = [
    ...FIRST.filter((name) => present.has(name)),
    ...[...present].filter((name) => !FIRST.includes(name)).sort(),
  ];
  const head = make('tr', {}, ...['step', ...columns].map((name) => make('th', { scope: 'col' }, name)));
  const body = make('tbody');
  let built = 0;
  const build = (/** @type {number} */ count) => {
    const next = checkpoints.slice(built, built + count);
    built += next.length;
    for (const { step, metrics } of next) {
      const cells = columns.map((name) => make('td', {}, short(metrics[name])));
      body.append(make('tr', {}, make('td', {}, String(step)), ...cells));
    }
  };
  build(first);
  holder.onscroll = () => {
    const below = holder.scrollHeight - holder.scrollTop - holder.clientHeight;
    if (below < holder.clientHeight) build(ROWS);
  };
  return make('table', { className: 'plain' }, make('thead', {}, head), body);
}
