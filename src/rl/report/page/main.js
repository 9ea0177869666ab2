/** Data of the page -> the whole page, kept up to date if a server delivers it. */
import { drawCharts } from './charts.js';
import { drawDecisions } from './decisions.js';
import { byId } from './elements.js';
import { drawTables } from './tables.js';
import { drawTrajectories } from './trajectories.js';

const REFRESH_MS = 10_000;

let data = JSON.parse(byId('data').textContent);
const dark = matchMedia('(prefers-color-scheme: dark)');
let theme = dark.matches ? 'dark' : 'light';

function drawTheme() {
  document.documentElement.dataset['theme'] = theme;
  byId('theme').textContent = theme === 'dark' ? 'Light' : 'Dark';
  drawCharts(data);
  drawDecisions(data);
}

byId('theme').onclick = () => {
  theme = theme === 'dark' ? 'light' : 'dark';
  drawTheme();
};
dark.onchange = () => {
  theme = dark.matches ? 'dark' : 'light';
  drawTheme();
};
drawTables(data);
drawTheme();
drawTrajectories(data.splits);
document.documentElement.dataset['ready'] = 'true';

/** Shows the data of a newer page of the same run. */
async function refresh() {
  const response = await fetch(location.href);
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  const newer = JSON.parse(page.getElementById('data')?.textContent ?? 'null');
  const content = (/** @type {any} */ { made: _, ...rest }) => JSON.stringify(rest);
  if (!newer || content(newer) === content(data)) return;
  for (const old of document.querySelectorAll('[id^="part-"]')) old.remove();
  document.body.append(...page.querySelectorAll('[id^="part-"]'));
  data = newer;
  drawTables(data);
  drawCharts(data);
  drawDecisions(data);
  drawTrajectories(data.splits);
}

if (location.protocol.startsWith('http'))
  setInterval(() => document.visibilityState === 'visible' && refresh().catch(() => {}), REFRESH_MS);
