/** The grammar engine, an addon of its own -> loaded, after it is built where it is not. */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { OnpolicyError } from '../errors.ts';
import { addonFolder } from './addon.ts';
import type { GrammarAddon } from './grammar.ts';
import { withKnownErrors } from './known-errors.ts';
import { buildPart, type LatePart, missingPart, type Notice } from './late-part.ts';

const GRAMMAR: LatePart = {
  name: 'grammar engine',
  takes: 'about half a minute',
  script: 'build-addon.mjs',
  places: () => [grammarFile()],
  canBuild: () => addonFolder().endsWith(path.join('native', 'build', 'Release')),
  find: () => (fs.existsSync(grammarFile()) && isOfTheAddonsSources() ? grammarFile() : undefined),
};

let loaded: GrammarAddon | undefined;
let built: Promise<void> | undefined;

/** The loaded grammar engine. Throws `NATIVE_UNAVAILABLE` with the command that builds it where it is missing. */
export function grammarAddon(): GrammarAddon {
  if (loaded) return loaded;
  const file = GRAMMAR.find();
  if (file === undefined) throw missingPart(GRAMMAR);
  try {
    loaded = withKnownErrors(createRequire(import.meta.url)(file) as GrammarAddon);
  } catch (cause) {
    throw new OnpolicyError(
      'NATIVE_UNAVAILABLE',
      `the grammar engine ${file} does not load: ${String(cause)}`,
      {
        cause,
      },
    );
  }
  return loaded;
}

/**
 * The same, after it is built where there are only its sources, which takes half a minute; `notice` gets the line that says so, else
 * standard error. Fails with `NATIVE_UNAVAILABLE`.
 */
export async function openGrammar(notice: Notice = toStandardError): Promise<GrammarAddon> {
  if (!loaded && GRAMMAR.find() === undefined) {
    built ??= buildPart(GRAMMAR, notice).finally(() => {
      built = undefined;
    });
    await built;
  }
  return grammarAddon();
}

function toStandardError(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** Beside the main addon: they are of one version. */
function grammarFile(): string {
  return path.join(addonFolder(), 'grammar.node');
}

/** Always in a package: builds write stamps, packing leaves them out. */
function isOfTheAddonsSources(): boolean {
  const [addon, grammar] = ['onpolicy', 'grammar'].map((name) => {
    const stamp = path.join(addonFolder(), '..', `${name}.sha256`);
    return fs.existsSync(stamp) ? fs.readFileSync(stamp, 'utf8') : null;
  });
  return addon === grammar;
}
