/** Data of a run -> one self-contained HTML file. */
import fs from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { packageFile } from '../../common/index.ts';
import type { ReportData } from './report-data.ts';
import type { Parts } from './report-parts.ts';

/** Folder of the page's files. When a bundler moves this code, they stay in the package. */
const PAGE = packageFile('dist/rl/report/page');

/** The icon of the chat page, also of this one. */
const ICON = packageFile('dist/serve/page/icon.svg');

export async function toHtml(data: ReportData, { splits, parts }: Parts): Promise<string> {
  const [html, style, script, icon] = await Promise.all(
    [...['page.html', 'style.css', 'main.js'].map((name) => path.join(PAGE, name)), ICON].map((file) =>
      fs.readFile(file, 'utf8'),
    ),
  );
  const [charts, chartStyle] = await Promise.all(
    ['uPlot.iife.min.js', 'uPlot.min.css'].map((name) =>
      fs.readFile(createRequire(import.meta.url).resolve(`uplot/dist/${name}`), 'utf8'),
    ),
  );
  const title = `${data.model.name ?? data.model.id}: training report`;
  const content: Record<string, string> = {
    icon: `<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(icon!)}">`,
    style: `<style>${chartStyle}\n${style}</style>`,
    charts: `<script>${charts}</script>`,
    data: `<script type="application/json" id="data">${inScript({ ...data, splits })}</script>`,
    parts: parts
      .map((part, i) => `<script type="application/octet-stream" id="part-${i}">${part}</script>`)
      .join('\n'),
    script: `<script type="module">${script}</script>`,
  };
  return html!
    .replace(/<title>.*<\/title>/, () => `<title>${escapeHtml(title)}</title>`)
    .replace(/<!-- (\w+) -->/g, (_, name: string) => content[name]!);
}

/** JSON that cannot end its script element. */
function inScript(value: unknown): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c');
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
}
