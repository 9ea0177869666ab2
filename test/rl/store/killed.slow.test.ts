/** A process killed while it writes -> a store with all acknowledged writes. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { closeAll, newHome, open, type TestHome } from './homes.ts';

const isBuilt = fs.existsSync(
  fileURLToPath(new URL('../../../dist/rl/store/open-store.js', import.meta.url)),
);
if (!isBuilt) process.stderr.write('killed store tests skipped: run "npm run setup" first\n');
const KILLS = Number(process.env['ONPOLICY_KILLS'] ?? 10);
const TRAJECTORIES_PER_CALL = 300;

type Line = { kind: 'try' | 'done' | 'ready'; act: string; id: string; step: number; job: string };
type Known = { logs: number; steps: Set<number> };

/** Runs the program until `afterMs`, kills it, and gives what it said. */
async function runAndKill(home: string, seed: number, afterMs: number): Promise<Line[]> {
  const script = fileURLToPath(new URL('./killed-store.mjs', import.meta.url));
  const child = spawn(process.execPath, [script, home, String(seed)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const said: Line[] = [];
  const reading = createInterface({ input: child.stdout! });
  const ready = once(reading, 'line');
  reading.on('line', (line) => said.push(JSON.parse(line)));
  const ended = once(child, 'exit');
  const closed = once(reading, 'close');
  await ready;
  await sleep(afterMs); // real time: another process is killed
  child.kill('SIGKILL');
  expect((await ended)[1]).toBe('SIGKILL'); // it did not end by itself
  await closed;
  return said;
}

async function counts({ runtime }: TestHome, id: string): Promise<Known> {
  let trajectories = 0;
  for await (const _ of runtime.runs.trajectories(id, 'val')) trajectories++;
  let logs = 0;
  for await (const { source } of runtime.runs.metrics(id)) logs += Number(source === 'val');
  expect(trajectories).toBe(logs * TRAJECTORIES_PER_CALL); // no call is half there
  const steps = new Set<number>();
  let after: string | null = null;
  do {
    const page: Awaited<ReturnType<TestHome['runtime']['checkpoints']['list']>> =
      await runtime.checkpoints.list(id, { after, limit: 100 });
    for (const { step } of page.data) steps.add(step);
    after = page.has_more ? page.last_id : null;
  } while (after !== null);
  return { logs, steps };
}

describe.skipIf(!isBuilt)('a process that is killed while it writes', () => {
  it(
    `loses nothing it has acknowledged, and leaves nothing half-done (${KILLS} times)`,
    async () => {
      const home = newHome();
      let known = new Map<string, Known>();
      const acts = new Map<string, number>();
      for (let kill = 0; kill < KILLS; kill++) {
        const said = await runAndKill(home, kill + 1, (kill * 37) % 211);
        const deleted = new Set<string>();
        let open_: Line | null = null; // tried, and not known to be done
        for (const line of said) {
          open_ = line.kind === 'try' ? line : null;
          if (line.kind !== 'done') continue;
          acts.set(line.act, (acts.get(line.act) ?? 0) + 1);
          const model = known.get(line.id);
          if (line.act === 'create') known.set(line.id, { logs: 0, steps: new Set() });
          if (line.act === 'delete') known.delete(line.id) && deleted.add(line.id);
          if (line.act === 'log') model!.logs++;
          if (line.act === 'train') model!.steps.add(line.step);
          if (line.act === 'drop') model!.steps.delete(line.step);
          if (line.act === 'prune') model!.steps = new Set([-1]); // whatever is there
        }
        const opened = await open(home);
        const listed = (await opened.runtime.models.list({ limit: 100 })).data.map(({ id }) => id);
        const found = new Map<string, Known>();
        for (const id of listed) {
          expect(deleted.has(id)).toBe(false);
          const now = await counts(opened, id);
          found.set(id, now);
          const before = known.get(id);
          const mayDiffer = open_?.id === id ? open_.act : null;
          if (!before)
            expect(open_?.act).toBe('create'); // it was made, and could not say so
          else {
            expect(now.logs - before.logs).toBeOneOf(mayDiffer === 'log' ? [0, 1] : [0]);
            const isSure = mayDiffer !== 'prune' && !before.steps.has(-1);
            const unsure = mayDiffer === 'train' || mayDiffer === 'drop' ? open_!.step : -1;
            const sure = (steps: Set<number>) =>
              [...steps].filter((step) => step !== unsure).sort((a, b) => a - b);
            if (isSure) expect(sure(now.steps)).toEqual(sure(before.steps));
          }
          if (now.steps.size > 0) (await opened.store.useCheckpoint(id))[Symbol.dispose](); // its files are whole
        }
        for (const id of known.keys()) if (!found.has(id)) expect(open_).toMatchObject({ act: 'delete', id });
        if (open_?.act === 'train' && found.has(open_.id))
          expect((await opened.store.jobs.read(open_.job)).status).toBeOneOf(['failed', 'completed']);
        expect(opened.problems).toEqual([]);
        await closeAll();
        known = found;
      }
      const last = await open(home);
      await last.runtime.models.create({ base_model: 'a' });
      expect(fs.readdirSync(path.join(home, 'trash'))).toEqual([]);
      process.stderr.write(
        `killed ${KILLS} times after ${[...acts].map(([act, count]) => `${count} ${act}`).join(', ')}\n`,
      );
    },
    60_000 * KILLS,
  );
});

describe.skipIf(!isBuilt)('two processes on one home folder', () => {
  it('one writes, the other reads and says why it cannot write', async () => {
    const home = newHome();
    const script = fileURLToPath(new URL('./killed-store.mjs', import.meta.url));
    const child = spawn(process.execPath, [script, home, '5'], { stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = once(child, 'exit');
    const reading = createInterface({ input: child.stdout! });
    while (!String(await once(reading, 'line')).includes('"done"')) {} // it has written
    const { runtime } = await open(home);
    const { data } = await runtime.models.list();
    expect(data.length).toBeGreaterThan(0);
    await expect(runtime.models.create({ base_model: 'a' })).rejects.toMatchObject({
      code: 'STORE_FAILED',
      message: expect.stringContaining(`process ${child.pid} on`),
    });
    child.kill('SIGKILL');
    await ended;
    expect(await runtime.models.create({ base_model: 'a' })).toMatchObject({ object: 'model' }); // at once
  });

  it('one dies as soon as it has the lock, and the other writes', async () => {
    const home = newHome();
    const script = fileURLToPath(new URL('./killed-store.mjs', import.meta.url));
    // Kills the process in the call that follows the creation of the lock.
    const preload = `import fs from 'node:fs';
      const { utimes } = fs;
      fs.utimes = (file, ...rest) =>
        file.endsWith('.lock') ? process.kill(process.pid, 'SIGKILL') : utimes(file, ...rest);`;
    const child = spawn(
      process.execPath,
      ['--import', `data:text/javascript,${encodeURIComponent(preload)}`, script, home, '5'],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    );
    await once(child, 'exit');
    expect(fs.readdirSync(path.join(home, '.lock'))).toEqual(['writer.json']); // still locked
    const { runtime } = await open(home);
    expect(await runtime.models.create({ base_model: 'a' })).toMatchObject({ object: 'model' });
  });
});
