/** An addon of node-llama-cpp that is opened after our libraries -> an error, if it is of another release. */
import fs from 'node:fs';
import path from 'node:path';
import { OnpolicyError } from '../../errors.ts';

/** The file of node-llama-cpp that links llama.cpp's libraries. */
const ADDON = 'llama-addon.node';

/**
 * Makes this thread's `process.dlopen` refuse addons of node-llama-cpp whose release is not that of the libraries in `folder`. Libraries of a
 * process find each other by name: such an addon would run our llama.cpp, and report that it runs its own.
 */
export function refuseOtherReleases(folder: string): void {
  const { dlopen } = process;
  process.dlopen = (module, file, ...flags) => {
    const other = path.basename(file) === ADDON ? otherRelease(file, folder) : null;
    if (other) throw new OnpolicyError('NATIVE_UNAVAILABLE', other);
    return dlopen.call(process, module, file, ...flags);
  };
}

function otherRelease(file: string, folder: string): string | null {
  const [theirs, ours] = [releaseOf(file), releaseOf(folder)];
  if (theirs === ours) return null;
  return (
    `this process already runs llama.cpp of node-llama-cpp ${ours ?? 'of an unknown release'} for onpolicy, and ${file} is of ` +
    `${theirs ?? 'an unknown release'}: two releases in one process would call each other's functions; install one release of ` +
    'node-llama-cpp for both, or give the runtime of onpolicy `isolate: true`'
  );
}

/** The version of the package of a file. The packages of a release have one version. Null if the file is in no package. */
function releaseOf(file: string): string | null {
  for (let folder = file; path.dirname(folder) !== folder; folder = path.dirname(folder)) {
    const manifest = path.join(folder, 'package.json');
    if (!fs.existsSync(manifest)) continue;
    const { name, version } = JSON.parse(fs.readFileSync(manifest, 'utf8')) as {
      name?: string;
      version?: string;
    };
    if (version !== undefined && /node-llama-cpp/.test(name ?? '')) return version;
  }
  return null;
}
