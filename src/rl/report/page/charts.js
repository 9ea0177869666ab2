/** Curves over steps -> charts of uPlot. */
import { byId, color, make, short } from './elements.js';

/** A script of its own, before this one. */
const { uPlot } = /** @type {any} */ (globalThis);

const HEIGHT = 190;
const COLORS = ['--first', '--second', '--third', '--fourth'];

/** The first charts: title, curves, and the curve of the spread around the first. A split's curves are beside those of training. */
const MAIN = [
  { title: 'Reward', names: ['train/reward'], spread: 'train/reward_std_dev' },
  { title: 'Loss', names: ['loss/train'] },
  { title: 'KL divergence', names: ['loss/kl_div', 'loss/kl_policy_ref'] },
  { title: 'Entropy', names: ['loss/entropy'] },
  { title: 'Clip fraction', names: ['train/clip_fraction'] },
  { title: 'Learning rate', names: ['loss/learning_rate'] },
  { title: 'Gradient norm', names: ['loss/grad_norm'] },
  { title: 'Throughput (tokens/s)', names: ['throughput/train_tok_per_s'] },
];

/** Draws all curves of a page's data, in place of earlier ones. @param {any} data */
export function drawCharts({ curves: own, other, splits }) {
  const curves = other ? together(own, other.curves, other.model.name ?? other.model.id) : own;
  const ofSplits = ['train', ...splits.map((/** @type {any} */ { split }) => split)];
  /** The same measure of all splits. @param {string} name */
  const besides = (name) => {
    const at = name.indexOf('/');
    return ofSplits.includes(name.slice(0, at))
      ? [...new Set(ofSplits.map((split) => split + name.slice(at)))]
      : [name];
  };
  const main = MAIN.map((chart) => ({ ...chart, names: chart.names.flatMap(besides) }));
  const shown = new Set(main.flatMap(({ names, spread }) => [...names, spread ?? '']));
  /** @type {any[]} */
  const others = [];
  for (const name of Object.keys(own.values).sort()) {
    if (shown.has(name)) continue;
    const names = besides(name);
    for (const one of names) shown.add(one);
    others.push({ title: names.length > 1 ? name.slice(name.indexOf('/') + 1) : name, names });
  }
  const isEmpty = curves.steps.length === 0;
  byId('curves-hint').textContent = isEmpty
    ? 'Nothing was logged or trained yet.'
    : 'Focus a chart and press the left and right arrow keys to read its values.';
  fill(byId('charts'), curves, main);
  byId('more').hidden = others.length === 0;
  byId('more').ontoggle = () => byId('more').open && fill(byId('more-charts'), curves, others);
  if (byId('more').open) fill(byId('more-charts'), curves, others);
}

/**
 * Two runs over the same steps. The curves of the other one are under its name, too.
 * @param {any} own @param {any} other @param {string} label
 */
function together(own, other, label) {
  const steps = [...new Set([...own.steps, ...other.steps])].sort((a, b) => a - b);
  const spread = (/** @type {any} */ { steps: had, values }, /** @type {string} */ end) =>
    Object.entries(values).map(([name, column]) => {
      const at = new Map(had.map((/** @type {number} */ step, /** @type {number} */ i) => [step, column[i]]));
      return [name + end, steps.map((step) => at.get(step) ?? null)];
    });
  const values = Object.fromEntries([...spread(own, ''), ...spread(other, ` (${label})`)]);
  return { steps, values, end: ` (${label})` };
}

/** @param {any} holder @param {any} curves @param {any[]} charts */
function fill(holder, curves, charts) {
  holder.replaceChildren();
  for (const chart of charts) {
    const names = chart.names.filter((/** @type {string} */ name) => name in curves.values);
    const others = chart.names.filter((/** @type {string} */ name) => name + curves.end in curves.values);
    if (names.length > 0) draw(holder, curves, { ...chart, names, others });
  }
}

/** @param {any} holder @param {any} curves @param {any} chart */
function draw(holder, curves, { title, names, others, spread }) {
  const box = make('div', {
    className: 'chart',
    tabIndex: 0,
    role: 'group',
    'aria-label': `Chart: ${title}`,
  });
  box.append(make('h3', {}, title));
  holder.append(box);
  const drawn = [
    ...names.map((/** @type {string} */ name) => ({ name, label: name, dash: [] })),
    ...others.map((/** @type {string} */ name) => ({ name, label: name + curves.end, dash: [6, 4] })),
  ];
  const columns = drawn.map(({ label }) => curves.values[label]);
  const data = [curves.steps, ...columns];
  const colors = COLORS.map(color);
  const isSparse = curves.steps.length < 40;
  const shownAs = (/** @type {any} */ _, /** @type {any} */ value) => short(value);
  /** @type {any[]} */
  const series = drawn.map(({ name, label, dash }) => ({
    label,
    stroke: colors[[...names, ...others].indexOf(name) % colors.length],
    dash,
    width: 1.5,
    spanGaps: true,
    points: { show: isSparse, size: 4 },
    value: shownAs,
  }));
  const bands = [];
  if (spread in curves.values && names[0] === 'train/reward') {
    const deviation = curves.values[spread];
    const around = (/** @type {number} */ sign) =>
      columns[0].map((/** @type {number | null} */ value, /** @type {number} */ i) =>
        value === null || deviation[i] === null ? null : value + sign * deviation[i],
      );
    data.push(around(1), around(-1));
    const edge = { stroke: 'transparent', points: { show: false }, spanGaps: true, value: shownAs };
    series.push({ ...edge, label: '+ spread' }, { ...edge, label: '- spread' });
    bands.push({ series: [data.length - 2, data.length - 1], fill: `${colors[0]}33` });
  }
  const axis = {
    stroke: color('--quiet'),
    grid: { stroke: color('--line'), width: 1 },
    ticks: { stroke: color('--line'), width: 1 },
  };
  const plot = new uPlot(
    {
      width: Math.max(200, box.clientWidth - 20),
      height: HEIGHT,
      series: [{ label: 'step' }, ...series],
      bands,
      scales: { x: { time: false }, y: { range: rangeOf } },
      axes: [
        { ...axis, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 50000, 100000] },
        {
          ...axis,
          size: 62,
          values: (/** @type {any} */ _, /** @type {number[]} */ ticks) => ticks.map(short),
        },
      ],
    },
    data,
    box,
  );
  box.onkeydown = (/** @type {KeyboardEvent} */ event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move) return;
    event.preventDefault();
    const at = plot.cursor.idx ?? (move > 0 ? -1 : curves.steps.length);
    const next = Math.min(curves.steps.length - 1, Math.max(0, at + move));
    plot.setCursor({ left: plot.valToPos(curves.steps[next], 'x'), top: HEIGHT / 2 });
  };
  new ResizeObserver(() =>
    plot.setSize({ width: Math.max(200, box.clientWidth - 20), height: HEIGHT }),
  ).observe(box);
}

/**
 * Returns the range of the vertical axis: the values and a tenth more, as uPlot does by itself, but 0 to 1 if all values are 0.
 * @param {any} _
 * @param {number | null} min
 * @param {number | null} max
 */
function rangeOf(_, min, max) {
  if (min === null || max === null) return [null, null];
  return min === 0 && max === 0 ? [0, 1] : uPlot.rangeNum(min, max, 0.1, true);
}
