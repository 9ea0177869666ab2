/**
 * An `hf:` URI of a GGUF model -> the URI of the projector in the same repository, or null if there is none. The hub is asked once per
 * model file.
 */
import path from 'node:path';
import type { HubOptions } from '../protocol/index.ts';
import {
  aborted,
  type ListedFile,
  listFiles,
  networkReason,
  parseReference,
  readNote,
  uriOf,
  writeNote,
} from './hub/index.ts';

const IS_PROJECTOR = /mmproj[^/]*\.gguf$/i;
/** Best first: the usual published type, then those without loss, then the small ones. */
const TYPES = [/(^|[^b])f16/i, /bf16/i, /f32/i, /q8_0/i];

/**
 * Finds the projector of a model. The result is noted beside `file`, the path of the model, so that the hub is not asked again. If the hub
 * does not list its files, returns null and passes a line to `warn`. Fails with `ABORTED`.
 */
export async function projectorInRepository(
  reference: string,
  file: string,
  { hub, signal, warn }: { hub: HubOptions; signal: AbortSignal; warn: (line: string) => void },
): Promise<string | null> {
  const { projector } = readNote(file, 'projector');
  if (typeof projector === 'string' || projector === null) return projector;
  if (hub.offline) return null;
  const repository = parseReference(reference);
  let files: readonly ListedFile[];
  try {
    const listed = await listFiles(repository, hub, signal);
    if (listed === null) throw new Error('the hub has no such repository');
    files = listed;
  } catch (cause) {
    if (signal.aborted) throw aborted(reference, cause);
    warn(`${reference}: whether its repository has a projector is not known: ${networkReason(cause)}`);
    return null;
  }
  const found = chooseProjector(
    files.map((one) => one.path),
    path.posix.dirname(repository.file ?? 'model.gguf'),
  );
  const uri = found === null ? null : uriOf(repository, found);
  await writeNote(file, 'projector', { projector: uri });
  return uri;
}

/** Returns the best of a repository's projectors. It prefers those in the model's folder, then 16-bit ones. */
export function chooseProjector(files: readonly string[], folder: string): string | null {
  const rank = (file: string): number => {
    const type = TYPES.findIndex((pattern) => pattern.test(path.posix.basename(file)));
    const isElsewhere = path.posix.dirname(file) !== folder;
    return (isElsewhere ? TYPES.length + 1 : 0) + (type < 0 ? TYPES.length : type);
  };
  const found = files.filter((file) => IS_PROJECTOR.test(file));
  return found.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))[0] ?? null;
}
