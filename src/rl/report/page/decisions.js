/** A report of learned decisions -> tables of their measures before and after, and reliability diagrams. */
import { byId, color, make, short } from './elements.js';

const MEASURES = ['count', 'accuracy', 'loss', 'brier', 'ece', 'temperature', 'noise'];
const SIZE = 220;
const MARGIN = 28;

/** Draws the section, or hides it for a model without learned decisions. @param {any} data */
export function drawDecisions({ decisions }) {
  byId('decisions').hidden = !decisions;
  if (!decisions) return;
  const { step, report } = decisions;
  const { train, calibrate, heldOut } = report.examples;
  byId('decisions-hint').textContent =
    `Checkpoint ${step} learned from ${train} examples; ${calibrate} others chose epoch ${report.epoch} and fitted the calibration. ` +
    `The numbers are of ${heldOut} further ones. A point is a tenth of the range of probabilities, with its number of questions; on the diagonal, probabilities are frequencies.`;
  byId('kinds').replaceChildren(
    ...Object.entries(report.kinds).map(([kind, { before, after }]) =>
      make(
        'div',
        { className: 'chart' },
        make('h3', {}, kind),
        table({ before, after }),
        diagram(`Reliability of ${kind} decisions`, { before, after }),
      ),
    ),
  );
}

/** @param {Record<string, any>} columns */
function table(columns) {
  const head = make(
    'tr',
    {},
    ...['', ...Object.keys(columns)].map((name) => make('th', { scope: 'col' }, name)),
  );
  const rows = MEASURES.map((name) =>
    make(
      'tr',
      {},
      make('th', { scope: 'row' }, name),
      ...Object.values(columns).map((measures) => make('td', {}, short(measures[name] ?? 0))),
    ),
  );
  return make('table', { className: 'plain' }, make('thead', {}, head), make('tbody', {}, ...rows));
}

/** A square from 0 to 1: the mean probability of a bin to the right, its fraction of right answers upwards. @param {string} title @param {Record<string, any>} series */
function diagram(title, series) {
  const at = (/** @type {number} */ value) => MARGIN + value * SIZE;
  const up = (/** @type {number} */ value) => at(1 - value);
  const side = SIZE + 2 * MARGIN;
  const frame = svg('svg', { viewBox: `0 0 ${side} ${side}`, role: 'img', 'aria-label': title });
  frame.append(
    svg('rect', { x: at(0), y: at(0), width: SIZE, height: SIZE, fill: 'none', stroke: color('--line') }),
    svg('line', { x1: at(0), y1: up(0), x2: at(1), y2: up(1), stroke: color('--line') }),
    label('0', at(0), up(0) + 16),
    label('probability', at(0.5), up(0) + 20),
    label('1', at(1), up(0) + 16),
    label('right', at(0) + 14, at(0) - 8),
  );
  for (const [i, [name, { bins }]] of Object.entries(series).entries()) {
    const stroke = color(i === 0 ? '--second' : '--first');
    const shown = bins.filter((/** @type {any} */ { count }) => count > 0);
    const points = shown.map((/** @type {any} */ bin) => `${at(bin.confidence)},${up(bin.accuracy)}`);
    frame.append(
      svg('polyline', {
        points: points.join(' '),
        fill: 'none',
        stroke,
        'stroke-dasharray': i === 0 ? '4 3' : '',
      }),
      ...shown.map((/** @type {any} */ { confidence, accuracy, count }) => {
        const point = svg('circle', {
          cx: at(confidence),
          cy: up(accuracy),
          r: 2 + Math.min(6, Math.sqrt(count) / 2),
          fill: stroke,
        });
        const words = `${name}: ${count} questions at ${short(confidence)}, ${short(accuracy)} of them right`;
        point.append(svg('title', {}, words));
        return point;
      }),
      label(name, at(0.8), at(0.9) - 16 * i, stroke),
    );
  }
  return frame;
}

/** @param {string} text @param {number} x @param {number} y */
function label(text, x, y, fill = color('--quiet')) {
  return svg('text', { x, y, fill, 'font-size': 11, 'text-anchor': 'middle' }, text);
}

/** @param {string} tag @param {Record<string, unknown>} attributes @param {...string} children */
function svg(tag, attributes, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}
