/** A missing part of the native code -> an error that names the script that builds it. */
import fs from 'node:fs';
import { packageFile } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';

/** `places`: paths where the part may be. `script`: the script of `scripts/` that builds it, which packages may not have. */
export function missingPart(name: string, places: readonly string[], script: string): OnpolicyError {
  const file = packageFile(`scripts/${script}`);
  const cure = fs.existsSync(file) ? `"node ${file}" builds it` : 'reinstall the package';
  const where = `looked for ${places.join(' and ')}`;
  return new OnpolicyError(
    'NATIVE_UNAVAILABLE',
    `no ${name} for ${process.platform}-${process.arch}: ${where}; ${cure}`,
  );
}
