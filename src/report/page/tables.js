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

/** @param {any} data */
export function drawTables(data) {
  const { model, run, checkpoints, other } = data;
  byId('name').textContent = model.name ?? model.id;
  byId('facts').textContent =
    `step ${model.step} · ${model.base_model} · ${model.id} · made ${new Date(data.made * 1000).toLocaleString()}` +
    (other ? ` · beside ${other.model.name ?? other.model.id}, step ${other.model.step} (dashed)` : '');
  byId('checkpoints').tabIndex = 0; // makes it scrollable by keyboard
  byId('checkpoints').replaceChildren(
    checkpoints.length === 0
      ? make('p', { className: 'hint' }, 'There are none.')
      : checkpointTable(checkpoints),
    ...(data.has_more_checkpoints ? [make('p', { className: 'hint' }, 'Older ones are left out.')] : []),
  );
  const facts = { id: model.id, 'base model': model.base_model, ...run.system, ...run.config };
  const rows = Object.entries(facts).map(([name, value]) => {
    const shown = typeof value === 'object' ? JSON.stringify(value) : String(value);
    return make('tr', {}, make('th', { scope: 'row' }, name), make('td', { className: 'long' }, shown));
  });
  byId('run').replaceChildren(make('table', { className: 'plain' }, ...rows));
}

/** @param {any[]} checkpoints */
function checkpointTable(checkpoints) {
  const present = new Set(checkpoints.flatMap(({ metrics }) => Object.keys(metrics)));
  const columns = [
    ...FIRST.filter((name) => present.has(name)),
    ...[...present].filter((name) => !FIRST.includes(name)).sort(),
  ];
  const head = make('tr', {}, ...['step', ...columns].map((name) => make('th', { scope: 'col' }, name)));
  const rows = checkpoints.map(({ step, metrics }) => {
    const cells = columns.map((name) => make('td', {}, short(metrics[name])));
    return make('tr', {}, make('td', {}, String(step)), ...cells);
  });
  return make('table', { className: 'plain' }, make('thead', {}, head), make('tbody', {}, ...rows));
}
