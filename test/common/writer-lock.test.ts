/** Processes that ended in any way -> their locks are free at once. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { currentWriter, lockForWriting } from '../../src/common/writer-lock/index.ts';

it.skipIf(process.platform !== 'linux')(
  'the lock of a process that nobody has waited for is free',
  async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-lock-'));
    const parent = spawn('sh', ['-c', 'sleep 0.05 & echo $!; exec sleep 20']); // the second sleep waits for nobody
    onTestFinished(() => {
      parent.kill();
      fs.rmSync(folder, { recursive: true, force: true });
    });
    const [line] = (await once(parent.stdout, 'data')) as [Buffer];
    const pid = Number(line.toString());
    await lockForWriting('the folder', folder, 'first');
    const file = path.join(folder, '.lock', 'writer.json');
    const writer = JSON.parse(fs.readFileSync(file, 'utf8')) as object;
    fs.writeFileSync(file, JSON.stringify({ ...writer, pid }));
    while (!/\) Z /.test(fs.readFileSync(`/proc/${pid}/stat`, 'utf8'))) await sleep(5);
    expect(await currentWriter(folder)).toBeNull();
    const second = await lockForWriting('the folder', folder, 'second');
    expect(second.isHeld()).toBe(true);
    await second.release();
  },
);
