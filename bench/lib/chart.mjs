// Rows of results -> an SVG chart: one panel for each unit, horizontal bars with their range, readable on light and dark pages.

const WIDTH = 960;
const CHARACTER_WIDTH = 7.3;
const VALUE_WIDTH = 110;
const BAR_HEIGHT = 16;
const BAR_GAP = 3;
const GROUP_GAP = 14;
const OURS = 'onpolicy';
const OUR_COLOUR = '#2563eb';
const OTHER_COLOURS = ['#9ca3af', '#64748b', '#ea580c', '#16a34a', '#a855f7', '#ca8a04'];

const STYLE = `
text { font: 13px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; fill: #1f2328; }
.title { font-size: 17px; font-weight: 600; }
.faint { fill: #59636e; font-size: 12px; }
.page { fill: #ffffff; stroke: #d1d9e0; }
.grid { stroke: #d1d9e0; }
.range { stroke: #1f2328; opacity: 0.75; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .faint { fill: #9198a1; }
  .page { fill: #0d1117; stroke: #3d444d; }
  .grid { stroke: #3d444d; }
  .range { stroke: #f0f6fc; }
}`;

const escapeXml = (text) =>
  String(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');

/** Three significant digits, without an exponent. */
export function formatNumber(value) {
  const size = Math.abs(value);
  if (size === 0 || size >= 100) return String(Math.round(value));
  return value
    .toFixed(Math.max(0, 2 - Math.floor(Math.log10(size))))
    .replace(/(\.\d*?)0+$|\.0+$/, (_, kept) => (kept && kept !== '.' ? kept : ''));
}

/** Round numbers from 0 to at least `max`, about five of them. */
function ticksUpTo(max) {
  if (!(max > 0)) return [0, 1];
  const rough = max / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough);
  return Array.from({ length: Math.ceil(max / step) + 1 }, (_, i) => i * step);
}

/** A row's name is "group: series", or a group of its own. */
function groupsOf(rows) {
  const groups = new Map();
  for (const row of rows) {
    const at = row.name.lastIndexOf(': ');
    const [group, series] = at < 0 ? [row.name, ''] : [row.name.slice(0, at), row.name.slice(at + 2)];
    if (!groups.has(group)) groups.set(group, []);
    groups.get(group).push({ ...row, series });
  }
  return groups;
}

function legend(colourOf, top) {
  let x = 24;
  let y = top;
  let svg = '';
  for (const [series, colour] of colourOf) {
    const width = 40 + CHARACTER_WIDTH * series.length;
    if (x + width > WIDTH) {
      x = 24;
      y += 22;
    }
    svg += `<rect x="${x}" y="${y}" width="12" height="12" rx="2" fill="${colour}"/>`;
    svg += `<text x="${x + 18}" y="${y + 11}">${escapeXml(series)}</text>`;
    x += width;
  }
  return { svg, bottom: y + 26 };
}

function panel(unit, rows, labelWidth, colourOf, top) {
  const ticks = ticksUpTo(Math.max(...rows.map((row) => row.max)));
  const plotWidth = WIDTH - labelWidth - VALUE_WIDTH;
  const x = (value) => labelWidth + (plotWidth * Math.max(0, value)) / ticks.at(-1);
  let svg = '';
  let y = top + GROUP_GAP;
  for (const [group, bars] of groupsOf(rows)) {
    const height = bars.length * (BAR_HEIGHT + BAR_GAP) - BAR_GAP;
    svg += `<text x="${labelWidth - 10}" y="${y + height / 2 + 4.5}" text-anchor="end">${escapeXml(group)}</text>`;
    for (const { series, median, min, max } of bars) {
      const middle = y + BAR_HEIGHT / 2;
      const length = Math.max(1, x(median) - labelWidth);
      const fill = colourOf.get(series) ?? OUR_COLOUR;
      svg += `<rect x="${labelWidth}" y="${y}" width="${length.toFixed(1)}" height="${BAR_HEIGHT}" rx="2" fill="${fill}"/>`;
      if (max > min) svg += `<path class="range" d="M${x(min).toFixed(1)} ${middle}H${x(max).toFixed(1)}"/>`;
      svg += `<text class="faint" x="${x(max) + 6}" y="${middle + 4.5}">${formatNumber(median)}</text>`;
      y += BAR_HEIGHT + BAR_GAP;
    }
    y += GROUP_GAP - BAR_GAP;
  }
  let grid = '';
  for (const tick of ticks) {
    grid += `<path class="grid" d="M${x(tick).toFixed(1)} ${top}V${y}"/>`;
    grid += `<text class="faint" x="${x(tick).toFixed(1)}" y="${y + 16}" text-anchor="middle">${formatNumber(tick)}</text>`;
  }
  const axis = `<text class="faint" x="${labelWidth + plotWidth / 2}" y="${y + 34}" text-anchor="middle">${escapeXml(unit)}</text>`;
  return { svg: grid + svg + axis, bottom: y + 52 };
}

/** The chart of some rows, which may have several units. */
export function drawChart(title, subtitle, rows) {
  const groups = groupsOf(rows);
  const named = new Set([...groups.values()].flat().flatMap(({ series }) => (series === '' ? [] : [series])));
  const others = [...named].filter((series) => series !== OURS);
  const colourOf = new Map(others.map((series, i) => [series, OTHER_COLOURS[i % OTHER_COLOURS.length]]));
  if (named.has(OURS)) colourOf.set(OURS, OUR_COLOUR);
  const labelWidth = 34 + CHARACTER_WIDTH * Math.max(...[...groups.keys()].map((group) => group.length));
  let body = `<text class="title" x="24" y="36">${escapeXml(title)}</text>`;
  body += `<text class="faint" x="24" y="56">${escapeXml(subtitle)}</text>`;
  let top = 74;
  if (colourOf.size > 0) {
    const { svg, bottom } = legend(colourOf, top);
    body += svg;
    top = bottom;
  }
  for (const unit of new Set(rows.map((row) => row.unit))) {
    const { svg, bottom } = panel(
      unit,
      rows.filter((row) => row.unit === unit),
      labelWidth,
      colourOf,
      top,
    );
    body += svg;
    top = bottom;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${top}" width="${WIDTH}" height="${top}" role="img" aria-label="${escapeXml(title)}">
<style>${STYLE}
</style>
<rect class="page" x="0.5" y="0.5" width="${WIDTH - 1}" height="${top - 1}" rx="8"/>
${body}
</svg>
`;
}
