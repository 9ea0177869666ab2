/** An `hf:` URI of a GGUF model -> the URI of the projector in the same repository; null if there is none. Asked once a model file. */
import path from 'node:path';
import {
  aborted,
  type ListedFile,
  listFiles,
  networkReason,
  parseReference,
  readNote,
  uriOf,
  writeNote,
} from '../hub/index.ts';
import type { HubOptions } from '../protocol/index.ts';

const IS_PROJECTOR = /mmproj[^/]*\.gguf$/i;
/** Best first: what a projector is usually published in, then what loses nothing of it, then the small ones. */
const TYPES = [/(^|[^b])f16/i, /bf16/i, /f32/i, /q8_0/i];

/**
 * `file`: where the model lies; what its repository has is noted beside it, so that the hub is asked no second time. A hub that
 * gives no list of files is no failure: `warn` gets a line. Fails with `ABORTED`.
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
  writeNote(file, 'projector', { projector: uri });
  return uri;
}

/** The best of a repository's projectors: those in the model's folder before others, 16-bit ones before others. */
export function chooseProjector(files: readonly string[], folder: string): string | null {
  const rank = (file: string): number => {
    const type = TYPES.findIndex((pattern) => pattern.test(path.posix.basename(file)));
    const isElsewhere = path.posix.dirname(file) !== folder;
    return (isElsewhere ? TYPES.length + 1 : 0) + (type < 0 ? TYPES.length : type);
  };
  const found = files.filter((file) => IS_PROJECTOR.test(file));
  return found.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))[0] ?? null;
}
