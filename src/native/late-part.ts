/** A part of the native code that a clone builds when it is first needed -> built by its script, or one sentence that says what is missing. */
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { packageFile } from '../common/index.ts';
import { OnpolicyError } from '../errors.ts';

/** Where a line about what takes long goes. */
export type Notice = (line: string) => void;

/** A part that may have to be built. */
export type LatePart = {
  /** What users call it. */
  readonly name: string;
  /** How long its compiler takes. */
  readonly takes: string;
  /** The script of `scripts/` that builds it where it is missing. */
  readonly script: string;
  /** Where it may lie. */
  readonly places: () => readonly string[];
  /** Whether this system and this copy of the library can build it, if the script is there. */
  readonly canBuild: () => boolean;
  /** Its file; undefined: it is not there, or of other sources than the addon. */
  readonly find: () => string | undefined;
};

/** Whether {@link buildPart} can. */
export function canBuildPart(part: LatePart): boolean {
  return part.canBuild() && fs.existsSync(scriptOf(part));
}

/** The error for a part that is not there, with the command that builds it where there is one. */
export function missingPart(part: LatePart, reason = ''): OnpolicyError {
  const cure = canBuildPart(part) ? `"node ${scriptOf(part)}" builds it` : 'reinstall the package';
  const missing = `no ${part.name} for ${process.platform}-${process.arch}: looked for ${part.places().join(' and ')}`;
  return new OnpolicyError('NATIVE_UNAVAILABLE', `${missing}; ${reason || cure}`);
}

/** Builds a part; `notice` gets the line that says so. Fails with `NATIVE_UNAVAILABLE`. */
export async function buildPart(part: LatePart, notice: Notice): Promise<void> {
  if (!canBuildPart(part)) throw missingPart(part);
  notice(`onpolicy: building the ${part.name}, once; it takes ${part.takes}`);
  const output: string[] = [];
  const code = await new Promise<number | null>((resolve, reject) => {
    const child = spawn(process.execPath, [scriptOf(part), '--if-missing'], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child.stderr.on('data', (text: Buffer) => output.push(text.toString()));
    child.on('error', reject).on('exit', resolve);
  });
  if (code === 0 && part.find() !== undefined) return;
  const reason = output.join('').trim().split('\n').slice(-5).join('; ');
  throw missingPart(part, `"node ${scriptOf(part)}" could not build it: ${reason}`);
}

function scriptOf({ script }: LatePart): string {
  return packageFile(`scripts/${script}`);
}
