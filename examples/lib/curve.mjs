// @ts-check
/** Values from 0 to 1, by step -> a curve as an SVG file, with the range of several runs behind it. What the examples draw. */
import fs from 'node:fs';

/** @typedef {{ step: number, value: number, low?: number, high?: number }} Point */

/**
 * The mean of several runs and their range. A run that has ended keeps its last value.
 * @param {{ step: number, value: number }[][]} runs
 * @returns {Point[]}
 */
export function meanAndRange(runs) {
  const steps = [...new Set(runs.flatMap((run) => run.map(({ step }) => step)))].sort((a, b) => a - b);
  return steps.map((step) => {
    const values = runs.map((run) => run.findLast((one) => one.step <= step)?.value ?? 0);
    const value = values.reduce((sum, one) => sum + one, 0) / values.length;
    return { step, value, low: Math.min(...values), high: Math.max(...values) };
  });
}

/**
 * @param {string} file
 * @param {string} title what the curve shows
 * @param {Point[]} points at least one, by step
 * @param {string} [unit] what the steps are
 */
export function writeCurve(file, title, points, unit = 'step') {
  const [first, last] = [points[0], points.at(-1)];
  if (!first || !last) throw new Error('a curve needs values');
  const width = Math.max(1, last.step - first.step);
  /** @param {number} step @param {number} value */
  const at = (step, value) =>
    `${Math.round(40 + ((step - first.step) * 420) / width)},${Math.round(220 - 200 * value)}`;
  const lines = [0, 0.5, 1].map(
    (y) => `<path d="M40 ${220 - 200 * y}H460" stroke="#8884"/><text x="8" y="${224 - 200 * y}">${y}</text>`,
  );
  const above = points.map(({ step, value, high = value }) => at(step, high));
  const below = points.map(({ step, value, low = value }) => at(step, low)).reverse();
  const middle = points.map(({ step, value }) => at(step, value));
  fs.writeFileSync(
    file,
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 260" font-family="sans-serif" font-size="12" fill="#888">
<title>${title}</title>${lines.join('')}
<polygon points="${[...above, ...below].join(' ')}" fill="#2a78d6" fill-opacity="0.25"/>
<polyline points="${middle.join(' ')}" fill="none" stroke="#2a78d6" stroke-width="2"/>
<text x="40" y="246">${unit} ${first.step}: ${first.value.toFixed(2)}</text><text x="460" y="246" text-anchor="end">${title.toLowerCase()}, ${unit} ${last.step}: ${last.value.toFixed(2)}</text>
</svg>\n`,
  );
}
