/** A repository -> its files, at the hub or on the local disk. */
import fs from 'node:fs';
import path from 'node:path';
import type { HubOptions } from '../../protocol/index.ts';
import { type HubReference, listAddress, repositoryFolder } from './reference.ts';

export type ListedFile = {
  /** Path in the repository, with `/`. */
  readonly path: string;
  /** Bytes. Null if the hub does not say. */
  readonly size: number | null;
  /** SHA-256. Null if the hub does not say. */
  readonly hash: string | null;
};

const TIMEOUT_MS = 30_000;

/** Asks the hub. Returns null if it has no such repository. */
export async function listFiles(
  reference: HubReference,
  hub: HubOptions,
  signal: AbortSignal,
): Promise<ListedFile[] | null> {
  const url = listAddress(reference, hub);
  const response = await fetch(url, {
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    headers: hub.token === undefined ? {} : { authorization: `Bearer ${hub.token}` },
  });
  if (response.status === 404) return null;
  if (!response.ok) throw new Error(`${url} answered with ${response.status}`);
  const { siblings } = (await response.json()) as { siblings?: readonly Sibling[] };
  if (!Array.isArray(siblings)) throw new Error(`${url} gave no list of files`);
  return siblings.flatMap(toFile);
}

type Sibling = { rfilename?: unknown; size?: unknown; lfs?: { sha256?: unknown; size?: unknown } } | null;

function toFile(sibling: Sibling): ListedFile[] {
  const { rfilename, size, lfs } = sibling ?? {};
  if (typeof rfilename !== 'string') return [];
  const bytes = lfs?.size ?? size;
  return [
    {
      path: rfilename,
      size: typeof bytes === 'number' ? bytes : null,
      hash: typeof lfs?.sha256 === 'string' ? lfs.sha256 : null,
    },
  ];
}

/** Returns the complete GGUF files on the local disk. */
export function localFiles(reference: HubReference, hub: HubOptions): ListedFile[] {
  const folder = repositoryFolder(reference, hub);
  if (!fs.existsSync(folder)) return [];
  const names = fs.readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => name.endsWith('.gguf'))
    .map((name) => ({
      path: name.replaceAll(path.sep, '/'),
      size: fs.statSync(path.join(folder, name)).size,
      hash: null,
    }));
}
