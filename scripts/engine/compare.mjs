// The present release of the engine and a wanted one -> rows of what differs: [check, before, now, file to edit], read without running it.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ARCHITECTURE_NAMES } from '../make/architectures/table.mjs';
import { missingFunctions, wantedFunctions } from './functions.mjs';
import { mirroredChanges, newArchitectures } from './mirrored.mjs';
import { librariesIn, releasesOf, unpack } from './registry.mjs';
import { namedReleases } from './release.mjs';
import { upstream } from './upstream.mjs';

/** Packages of hundreds of megabytes, whose main libraries are built of the same sources as those for the CPU. */
const LARGE = /cuda|vulkan/;

/**
 * Returns the contents of the release's file for `wanted`, and the rows. Platforms whose package is not in the registry keep the newest
 * accepted release. Throws if the addon cannot be built for `wanted` without leaving such a platform.
 */
export async function compareReleases(present, wanted) {
  const named = namedReleases(present);
  const there = await Promise.all(
    Object.keys(named).map(async (name) => [name, await releasesOf(`@node-llama-cpp/${name}`)]),
  );
  const lacking = there.filter(([, releases]) => !releases.includes(wanted)).map(([name]) => name);
  const [before, after] = [await upstream(present.release), await upstream(wanted)];
  const layout = layoutRows(before, after);
  if (layout.length > 0 && lacking.length > 0)
    throw new Error(
      `${wanted} has another binary interface, and these platforms would have no engine: ${lacking.join(', ')}\n${tableOf(layout)}`,
    );
  const accepted = { ...(layout.length > 0 ? {} : present.accepted), [wanted]: after.version };
  const releaseOf = (name) => (lacking.includes(name) ? named[name] : wanted);
  const namesOf = (group) => Object.fromEntries(Object.keys(group).map((name) => [name, releaseOf(name)]));
  const release = {
    release: wanted,
    accepted: Object.fromEntries(Object.entries(accepted).sort(([a], [b]) => byNumber(a, b))),
    installed: namesOf(present.installed),
    onRequest: namesOf(present.onRequest),
  };
  const rows = [
    ['llama.cpp', before.version, after.version, '-'],
    ...lacking.map((name) => [`package ${name}`, named[name], 'not in the registry', '-']),
    ...layout,
    ...(await functionRows(release)),
    ...mirroredRows(before, after),
    ...architectureRows(before, after),
  ];
  return { release, rows };
}

/** Returns a table of rows in Markdown. */
export function tableOf(rows) {
  const lines = [['check', 'before', 'now', 'file to edit'], ['---', '---', '---', '---'], ...rows];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function layoutRows(before, after) {
  const [a, b] = [before, after].map((source) => new Map(source.layout().map(nameAndValue)));
  const names = [...new Set([...a.keys(), ...b.keys()])].filter((name) => a.get(name) !== b.get(name));
  return names.map((name) => [
    name,
    a.get(name) ?? '-',
    b.get(name) ?? '-',
    'a build of its own for each layout',
  ]);
}

function nameAndValue(line) {
  const end = line.lastIndexOf(' ');
  return [line.slice(0, end), line.slice(end + 1)];
}

/** Functions that the libraries of a platform lack. All are read here, whatever system they are for. */
async function functionRows(release) {
  const wanted = wantedFunctions();
  const small = Object.entries(namedReleases(release)).filter(([name]) => !LARGE.test(name));
  const rows = [];
  for (const [name, named] of small) {
    const folder = librariesIn(await unpack(`@node-llama-cpp/${name}`, named));
    for (const [missing, list] of missingFunctions(folder, wanted))
      rows.push([missing, list, `not in ${name} ${named}`, 'native/engine-assumptions']);
  }
  console.log(
    `${wanted.length} functions looked up in the libraries of ${small.length} packages: ${rows.length} missing`,
  );
  return rows;
}

/** Changed functions that this library repeats. The differences are written to a file, to be read. */
function mirroredRows(before, after) {
  const changes = mirroredChanges(before, after);
  const file = path.join(os.tmpdir(), `onpolicy-engine-${before.release}-${after.release}.diff`);
  fs.writeFileSync(file, changes.map(([, , , difference]) => difference).join('\n'));
  console.log(`differences of upstream's functions, to be read: ${file}`);
  return changes.map(([what, count, ours]) => [what, '', `${count} lines differ`, ours]);
}

function architectureRows(before, after) {
  const known = ARCHITECTURE_NAMES.map((name) => name.replace(/-mtp$/, ''));
  return newArchitectures(before, after)
    .filter((name) => !known.includes(name))
    .map((name) => [`architecture ${name}`, 'unknown', 'new', 'scripts/make/architectures/table.mjs']);
}

function byNumber(a, b) {
  return a.localeCompare(b, 'en', { numeric: true });
}
