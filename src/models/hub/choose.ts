/** The files of a repository -> the models among them, and the one of a type. A split model consists of all its files. */
import path from 'node:path';
import type { ListedFile } from './list-files.ts';

/** A model of a repository. */
export type Candidate = {
  /** Files in order. There are several if the model is split. */
  readonly files: readonly ListedFile[];
  /** Bytes of all files. Null if the hub does not say. */
  readonly bytes: number | null;
};

const SPLIT = /-(\d{5})-of-(\d{5})\.gguf$/i;
/** Files that are no complete models. */
const BESIDE = /(^|[-_.])(mmproj|imatrix|mtp|eagle3|dflash)([-_.]|$)/i;
/** Names of files that draft for a model, as those of Gemma 4, or of whole models that are called so. */
const ASSISTANT = /(^|[-_.])assistant([-_.]|$)/i;

/** Returns every model whose files all exist, largest first. Files called "assistant" count only if there are no others. */
export function candidatesOf(files: readonly ListedFile[]): Candidate[] {
  const known = new Map(files.map((file) => [file.path, file]));
  const named = files.filter(
    ({ path: name }) =>
      /\.gguf$/i.test(name) && !BESIDE.test(path.posix.basename(name)) && partsOf(name)[0] === name,
  );
  const others = named.filter(({ path: name }) => !ASSISTANT.test(path.posix.basename(name)));
  return (others.length > 0 ? others : named)
    .flatMap(({ path: name }) => {
      const parts = partsOf(name).map((part) => known.get(part));
      if (parts.includes(undefined)) return [];
      const whole = parts as ListedFile[];
      return [{ files: whole, bytes: bytesOf(whole) }];
    })
    .sort((a, b) => (b.bytes ?? 0) - (a.bytes ?? 0) || (a.files[0]!.path < b.files[0]!.path ? -1 : 1));
}

/** Returns the bytes of all files. Returns null if the hub does not say. */
export function bytesOf(files: readonly ListedFile[]): number | null {
  return files.reduce<number | null>(
    (sum, { size }) => (sum === null || size === null ? null : sum + size),
    0,
  );
}

/** Returns all files of the model that a file belongs to. */
export function partsOf(file: string): string[] {
  const count = Number(SPLIT.exec(file)?.[2] ?? 0);
  if (count < 2) return [file];
  return Array.from({ length: count }, (_, i) =>
    file.replace(SPLIT, `-${String(i + 1).padStart(5, '0')}-of-$2.gguf`),
  );
}

/** Returns the model of a type, such as `Q4_K_M`, or null if there is none. If several match, returns the one with the shortest name. */
export function ofType(candidates: readonly Candidate[], type: string): Candidate | null {
  const wanted = type.toUpperCase();
  const fits = candidates.filter(({ files }) => {
    const stem = stemOf(files[0]!.path).toUpperCase();
    return stem === wanted || (stem.endsWith(wanted) && /[-_.]/.test(stem.at(-wanted.length - 1)!));
  });
  return fits.sort((a, b) => a.files[0]!.path.length - b.files[0]!.path.length)[0] ?? null;
}

export function typesOf(candidates: readonly Candidate[]): string {
  const types = candidates.flatMap(
    ({ files }) => TYPE.exec(stemOf(files[0]!.path))?.[1]?.toUpperCase() ?? [],
  );
  return [...new Set(types)].sort().join(', ');
}

const TYPE = /(?:^|[-_.])((?:UD-)?(?:I?Q\d\w*|TQ\d\w*|MXFP4\w*|NVFP4\w*|BF16|FP?16|F32))$/i;

function stemOf(file: string): string {
  return path.posix
    .basename(file)
    .replace(SPLIT, '')
    .replace(/\.gguf$/i, '');
}
