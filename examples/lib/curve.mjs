// @ts-check
/** Values from 0 to 1, by step -> a curve as an SVG file. What the examples draw. */
import fs from 'node:fs';

/**
 * @param {string} file
 * @param {string} title what the curve shows
 * @param {{ step: number, value: number }[]} values at least one, by step
 * @param {string} [unit] what the steps are
 */
export function writeCurve(file, title, values, unit = 'step') {
  const [first, last] = [values[0], values.at(-1)];
  if (!first || !last) throw new Error('a curve needs values');
  const width = Math.max(1, last.step - first.step);
  const points = values.map(
    ({ step, value }) => `${40 + ((step - first.step) * 420) / width},${220 - 200 * value}`,
  );
  const lines = [0, 0.5, 1].map(
    (y) => `<path d="M40 ${220 - 200 * y}H460" stroke="#8884"/><text x="8" y="${224 - 200 * y}">${y}</text>`,
  );
  fs.writeFileSync(
    file,
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 260" font-family="sans-serif" font-size="12" fill="#888">
<title>${title}</title>${lines.join('')}
<polyline points="${points.join(' ')}" fill="none" stroke="#2a78d6" stroke-width="2"/>
<text x="40" y="246">${unit} ${first.step}: ${first.value.toFixed(2)}</text><text x="460" y="246" text-anchor="end">${title.toLowerCase()}, ${unit} ${last.step}: ${last.value.toFixed(2)}</text>
</svg>\n`,
  );
}
