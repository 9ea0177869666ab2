// The file of the engine's releases <-> what follows from it: package.json and the docs. `src/engine/native/libraries.ts` reads it, too.
// `release`: that of node-llama-cpp whose headers the addon is compiled with; `accepted`: releases of the same layout, with the version of
// their llama.cpp; `installed`, `onRequest`: the platform packages that are dependencies, and those for optional use.
import fs from 'node:fs';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '../..');
const FILE = path.join(root, 'src/engine/native/release.json');
const MANIFEST = path.join(root, 'package.json');
/** Pages with lines to copy that name a release. */
const PAGES = ['docs/packaging.md'];
const SCOPE = '@node-llama-cpp/';
/** A package that npm skips on other platforms: it stands for those that node-llama-cpp would install. */
const SKIPPED = 'linux-riscv64';

export function readRelease() {
  return JSON.parse(fs.readFileSync(FILE, 'utf8'));
}

/** Writes the file and all that follows from it. */
export function writeRelease(release) {
  fs.writeFileSync(FILE, jsonText(release));
  for (const [file, text] of filesOf(release)) fs.writeFileSync(file, text);
}

/** Returns [path, text] of each file that follows from the release. */
export function filesOf(release) {
  const manifest = JSON.parse(fs.readFileSync(MANIFEST, 'utf8'));
  return [
    [MANIFEST, jsonText(manifestOf(manifest, release))],
    ...PAGES.map((page) => path.join(root, page)).map((page) => [
      page,
      pageOf(fs.readFileSync(page, 'utf8'), release),
    ]),
  ];
}

/** The release of each platform package. */
export function namedReleases({ installed, onRequest }) {
  return { ...installed, ...onRequest };
}

function manifestOf(manifest, release) {
  const { installed, onRequest } = release;
  const others = Object.entries(manifest.peerDependencies).filter(([name]) => !name.startsWith(SCOPE));
  return {
    ...manifest,
    optionalDependencies: scoped(installed),
    peerDependencies: sorted({ ...Object.fromEntries(others), ...scoped(onRequest) }),
    devDependencies: { ...manifest.devDependencies, 'node-llama-cpp': release.release },
    overrides: { ...manifest.overrides, 'node-llama-cpp': overridesOf(release) },
  };
}

/** Packages that node-llama-cpp must not install: those on request, and releases that are not in the registry. */
function overridesOf({ release, installed, onRequest }) {
  const skipped = `npm:${SCOPE}${SKIPPED}@${installed[SKIPPED]}`;
  const older = Object.entries(installed).filter(([, named]) => named !== release);
  const none = Object.keys(onRequest).map((name) => [name, skipped]);
  return sorted(scoped(Object.fromEntries([...older, ...none])));
}

function scoped(packages) {
  return Object.fromEntries(Object.entries(packages).map(([name, value]) => [SCOPE + name, value]));
}

function sorted(object) {
  return Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function pageOf(text, release) {
  const named = namedReleases(release);
  return text
    .replace(
      /(@node-llama-cpp\/)([a-z0-9-]+)@[\d.]+\d/g,
      (_, scope, name) => `${scope}${name}@${named[name]}`,
    )
    .replace(/`([a-z0-9-]+)` \d+\.\d+\.\d+/g, (all, name) =>
      named[name] ? `\`${name}\` ${named[name]}` : all,
    );
}

function jsonText(value) {
  return `${JSON.stringify(value, null, 2)}\n`;
}
