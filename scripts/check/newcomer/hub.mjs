// Downloads by the command from a hub of this machine that is slow, breaks off, lies about hashes and sizes, or fills the disk.
import fs from 'node:fs';
import path from 'node:path';
import { rolldown } from 'rolldown';
import { ROOT } from './project.mjs';

const MODEL = fs.readFileSync(path.join(ROOT, 'models', 'onpolicy-tiny.gguf'));
const FILE = 'tiny-Q8_0.gguf';
/** Fault of the hub, its settings, the expected exit code, and a pattern of the output. */
const CASES = [
  ['slow', { slowMs: 2000 }, 0, /./],
  ['breaks off twice', { cutAfter: 1_000_000, cuts: 2 }, 0, /./],
  ['breaks off and sends no ranges', { cutAfter: 1_000_000, cuts: 1, ignoresRanges: true }, 0, /./],
  ['another byte', { damages: true }, 1, /expected the hash/],
  ['a file larger than the disk', { claims: { [FILE]: 2 ** 52 } }, 1, /no room/],
  ['always breaks off', { cutAfter: 1000 }, 1, /./],
  ['down', { status: 503 }, 1, /503/],
];

/** Pulls the model from a hub with each fault. */
export async function hub(project) {
  const { openModelHub } = await importFake();
  const server = await openModelHub({ 'o/tiny': { [FILE]: MODEL } });
  const pull = async (name) => {
    const words = [
      'pull',
      'hf:o/tiny:Q8_0',
      '--hub-endpoint',
      server.endpoint,
      '--hub-folder',
      folderOf(name),
    ];
    return project.command('onpolicy', ...words);
  };
  const folderOf = (name) => path.join(project.folder, 'hub', name.replaceAll(' ', '-'));
  const whole = (name) => {
    const file = path.join(folderOf(name), 'o', 'tiny', FILE);
    return fs.existsSync(file) && fs.readFileSync(file).equals(MODEL);
  };
  for (const [name, faults, exitCode, message] of CASES) {
    for (const key of Object.keys(server.faults)) delete server.faults[key];
    Object.assign(server.faults, faults);
    const { code, stdout, stderr } = await pull(name);
    const said = message.test(stdout + stderr) && !/^ +at /m.test(stderr);
    const holds = code === exitCode && said && whole(name) === (exitCode === 0);
    project.check(`hub: ${name}`, holds, `${code}\n${stdout}${stderr}`);
  }
  for (const key of Object.keys(server.faults)) delete server.faults[key];
  const { code } = await pull('always breaks off');
  project.check('hub: goes on later', code === 0 && whole('always breaks off'));

  fs.rmSync(folderOf('always breaks off'), { recursive: true });
  Object.assign(server.faults, { cutAfter: 1000 });
  await pull('always breaks off');
  const folder = path.join(folderOf('always breaks off'), 'o', 'tiny');
  const part = path.join(
    folder,
    fs.readdirSync(folder).find((name) => name.endsWith('.part')),
  );
  fs.rmSync(part);
  fs.symlinkSync('/dev/full', part);
  delete server.faults.cutAfter;
  const full = await pull('always breaks off');
  project.check(
    'hub: the disk is full',
    full.code === 1 && /the disk is full/.test(full.stderr),
    full.stderr,
  );
  server.close();
}

/** The hub of the tests, which is TypeScript. */
async function importFake() {
  const bundle = await rolldown({
    input: path.join(ROOT, 'test', 'fakes', 'model-hub.ts'),
    platform: 'node',
  });
  const { output } = await bundle.generate({ format: 'esm' });
  await bundle.close();
  return await import(`data:text/javascript,${encodeURIComponent(output[0].code)}`);
}
