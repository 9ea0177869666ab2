// Plays somebody who meets the library for the first time: packs it (or takes the tarball named), installs it into an empty project,
// and does there what README and docs say. Prints what holds and what does not, and how long it took; fails if anything does not hold.
// Needs npm's registry, or its cache. --only init,pages,types,bundlers,command,hub,single: parts.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { bundlers } from './newcomer/bundlers.mjs';
import { command } from './newcomer/command.mjs';
import { hub } from './newcomer/hub.mjs';
import { init } from './newcomer/init.mjs';
import { pages, types } from './newcomer/pages.mjs';
import { newProject } from './newcomer/project.mjs';
import { single } from './newcomer/single.mjs';

const PARTS = { init, pages, types, bundlers, command, hub, single };
const { values, positionals } = parseArgs({ options: { only: { type: 'string' } }, allowPositionals: true });
const parts = values.only?.split(',') ?? Object.keys(PARTS);

const work = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-newcomer-'));
try {
  const project = await newProject(work, positionals[0]);
  for (const part of parts) {
    console.log(`== ${part}`);
    await PARTS[part](project);
  }
  console.log(`${project.held} hold, ${project.failed} do not`);
  process.exitCode = project.failed > 0 ? 1 : 0;
} finally {
  fs.rmSync(work, { recursive: true, force: true });
}
