/** An `hf:` URI of a GGUF model -> the URI of the projector in the same repository; null if there is none. Asked once a model file. */
import fs from 'node:fs';
import path from 'node:path';
import { ifMissing } from '../common/index.ts';
import { messageOf, OnpolicyError } from '../errors.ts';
import type { HubOptions } from '../protocol/index.ts';

const HUB = 'https://huggingface.co';
const TIMEOUT_MS = 30_000;
const IS_PROJECTOR = /mmproj[^/]*\.gguf$/i;
/** Best first: what a projector is usually published in, then what loses nothing of it, then the small ones. */
const TYPES = [/(^|[^b])f16/i, /bf16/i, /f32/i, /q8_0/i];

type Repository = { readonly name: string; readonly branch: string; readonly folder: string };

/**
 * `file`: where the model lies; what its repository has is noted beside it, so that the hub is asked no second time. A hub that
 * gives no list of files is no failure: `warn` gets a line. Fails with `ABORTED`.
 */
export async function projectorInRepository(
  reference: string,
  file: string,
  { hub, signal, warn }: { hub: HubOptions; signal: AbortSignal; warn: (line: string) => void },
): Promise<string | null> {
  const note = `${file}.projector.json`;
  const noted = readNote(note);
  if (noted !== undefined) return noted;
  if (hub.offline) return null;
  const repository = parseRepository(reference);
  let files: string[];
  try {
    files = await listFiles(repository, hub, signal);
  } catch (cause) {
    if (signal.aborted) throw new OnpolicyError('ABORTED', `downloading ${reference} was aborted`, { cause });
    warn(`${reference}: whether its repository has a projector is not known: ${messageOf(cause)}`);
    return null;
  }
  const found = chooseProjector(files, repository.folder);
  const { name, branch } = repository;
  const uri = found === null ? null : `hf:${name}/${found}${branch === 'main' ? '' : `#${branch}`}`;
  writeNote(note, uri);
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

/** `hf:owner/name`, `hf:owner/name:Q4_K_M`, `hf:owner/name/folder/file.gguf#branch`. */
function parseRepository(reference: string): Repository {
  const [rest = '', branch = 'main'] = reference.replace(/^hf:(\/\/)?/, '').split('#');
  const [owner, name = '', ...file] = rest.split('/');
  return {
    name: `${owner}/${name.split(':')[0]}`,
    branch,
    folder: path.posix.dirname(file.join('/') || 'model.gguf'),
  };
}

async function listFiles(
  { name, branch }: Repository,
  { endpoint = HUB, token }: HubOptions,
  signal: AbortSignal,
): Promise<string[]> {
  const url = `${endpoint.replace(/\/+$/, '')}/api/models/${name}/revision/${encodeURIComponent(branch)}`;
  const response = await fetch(url, {
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
  });
  if (!response.ok) throw new Error(`${url} answered with ${response.status}`);
  const { siblings } = (await response.json()) as { siblings?: { rfilename?: unknown }[] };
  if (!Array.isArray(siblings)) throw new Error(`${url} gave no list of files`);
  return siblings.map((sibling) => sibling?.rfilename).filter((file) => typeof file === 'string');
}

/** Undefined: nothing is noted. */
function readNote(file: string): string | null | undefined {
  try {
    const { projector } = JSON.parse(fs.readFileSync(file, 'utf8')) as { projector?: unknown };
    return typeof projector === 'string' || projector === null ? projector : undefined;
  } catch (error) {
    return error instanceof SyntaxError ? undefined : ifMissing(undefined)(error);
  }
}

function writeNote(file: string, projector: string | null): void {
  try {
    fs.writeFileSync(file, `${JSON.stringify({ projector })}\n`);
  } catch {
    // The folder cannot be written to: the hub is asked again next time.
  }
}
