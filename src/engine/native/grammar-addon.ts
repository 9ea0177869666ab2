/** The grammar engine, a separate addon -> loaded. */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { OnpolicyError } from '../../errors.ts';
import { addonFolder } from './addon.ts';
import type { GrammarAddon } from './grammar.ts';
import { withKnownErrors } from './known-errors.ts';
import { missingPart } from './missing-part.ts';

let loaded: GrammarAddon | undefined;

/** Loads the grammar engine on first use. Throws `NATIVE_UNAVAILABLE` with the command that builds it, if it is missing. */
export function grammarAddon(): GrammarAddon {
  if (loaded) return loaded;
  const file = path.join(addonFolder(), 'grammar.node'); // of the same version as the main addon beside it
  if (!fs.existsSync(file) || !isOfTheAddonsSources())
    throw missingPart('grammar engine', [file], 'build-addon.mjs');
  try {
    loaded = withKnownErrors(createRequire(import.meta.url)(file) as GrammarAddon);
  } catch (cause) {
    const message = `the grammar engine ${file} does not load: ${String(cause)}`;
    throw new OnpolicyError('NATIVE_UNAVAILABLE', message, { cause });
  }
  return loaded;
}

/** Returns true if the file was built with the addon's sources. Always true in a package, which omits the stamps that builds write. */
function isOfTheAddonsSources(): boolean {
  const [addon, grammar] = ['onpolicy', 'grammar'].map((name) => {
    const stamp = path.join(addonFolder(), '..', `${name}.sha256`);
    return fs.existsSync(stamp) ? fs.readFileSync(stamp, 'utf8') : null;
  });
  return addon === grammar;
}
