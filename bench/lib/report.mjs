// Rows of results -> the printed table, the JSON file and the chart, with the machine and the commit they belong to.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { drawChart, formatNumber } from './chart.mjs';

const RESULTS_FOLDER = fileURLToPath(new URL('../results/', import.meta.url));

/** Returns the properties of the machine that the figures depend on. */
export function describeMachine() {
  return {
    cpu: os.cpus()[0]?.model.trim() ?? 'unknown',
    cores: os.availableParallelism(),
    memoryGb: Math.round(os.totalmem() / 2 ** 30),
    platform: process.platform,
    arch: process.arch,
    node: process.versions.node,
  };
}

/** The checked-out commit, marked where the working tree differs from it. */
export function describeCommit() {
  try {
    const git = (...words) => execFileSync('git', words, { encoding: 'utf8', cwd: RESULTS_FOLDER }).trim();
    const isDirty = git('status', '--porcelain', '--', ':/', ':(exclude,top)bench/results') !== '';
    return git('rev-parse', '--short=12', 'HEAD') + (isDirty ? '-dirty' : '');
  } catch {
    return 'unknown';
  }
}

/** The rows as text: name, median, range, ratios. */
export function formatTable(rows) {
  const cells = rows.map((row) => [
    row.name,
    `${formatNumber(row.median)} ${row.unit}`,
    `${formatNumber(row.min)} .. ${formatNumber(row.max)}`,
    Object.entries(row.ratios ?? {})
      .map(([peer, ratio]) => `${ratio.toFixed(3)} x ${peer}`)
      .join(', '),
  ]);
  cells.unshift(['', 'median', 'range', 'ratio']);
  const widths = cells[0].map((_, column) => Math.max(...cells.map((line) => line[column].length)));
  const line = (values) =>
    values
      .map((text, column) => (column === 1 ? text.padStart(widths[1]) : text.padEnd(widths[column])))
      .join('  ')
      .trimEnd();
  return [
    line(cells[0]),
    widths.map((width) => '-'.repeat(width)).join('  '),
    ...cells.slice(1).map(line),
  ].join('\n');
}

/** The object that the JSON files hold. */
export function toJson(results) {
  return { machine: describeMachine(), commit: describeCommit(), results };
}

export function writeJson(file, value) {
  fs.mkdirSync(path.dirname(path.resolve(file)), { recursive: true });
  fs.writeFileSync(`${file}.partial`, `${JSON.stringify(value, null, 2)}\n`);
  fs.renameSync(`${file}.partial`, file);
}

/** Writes bench/results/<suite>.<machine>.json and .svg; gives their paths. */
export function writeResults(suite, results) {
  const value = toJson(results);
  const { machine, commit } = value;
  const slug = `${machine.platform}-${machine.arch}-${machine.cpu}-${machine.cores}`
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-');
  const stem = path.join(RESULTS_FOLDER, `${suite}.${slug}`);
  writeJson(`${stem}.json`, value);
  const subtitle = `${machine.cpu}, ${machine.cores} cores, ${machine.platform} ${machine.arch}, Node ${machine.node}, commit ${commit}; bars are medians, lines the range`;
  fs.writeFileSync(`${stem}.svg`, drawChart(suite, subtitle, results));
  return [`${stem}.json`, `${stem}.svg`].map((file) => path.relative(process.cwd(), file));
}
