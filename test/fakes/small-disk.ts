/** A number of kilobytes -> a folder with a disk of that size, where the system lets a test mount one. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** A small disk. */
export type SmallDisk = {
  /** Its folder; null: none can be mounted here, and the tests that need it are skipped. */
  readonly folder: string | null;
  /** Takes all that is left of it. */
  fill(): void;
  unmount(): void;
};

/** Mounts one; it goes when the process ends at the latest. */
export function smallDisk(kilobytes: number): SmallDisk {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-disk-'));
  const options = ['-t', 'tmpfs', '-o', `size=${kilobytes}k,mode=700`, 'onpolicy-test', folder];
  const isMounted = spawnSync('mount', options).status === 0;
  if (!isMounted) process.stderr.write('full disk tests skipped: a small disk cannot be mounted here\n');
  const unmount = (): void => {
    if (isMounted) spawnSync('umount', [folder]);
    fs.rmSync(folder, { recursive: true, force: true });
  };
  process.once('exit', unmount); // also when the run is cut short
  return {
    folder: isMounted ? folder : null,
    unmount,
    fill: () => {
      const { bavail, bsize } = fs.statfsSync(folder);
      fs.writeFileSync(path.join(folder, 'filler'), Buffer.alloc(bavail * bsize));
    },
  };
}
