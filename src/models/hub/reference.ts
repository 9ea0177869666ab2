/** An `hf:` URI of GGUF files -> its parts, the folder of its repository here, and addresses at the hub. */
import os from 'node:os';
import path from 'node:path';
import { errorAt } from '../../errors.ts';
import type { HubOptions } from '../../protocol/index.ts';

const HUB = 'https://huggingface.co';

export type HubReference = {
  readonly repository: string;
  readonly branch: string;
  /** Path of a file in the repository. Null if `type` selects the file. */
  readonly file: string | null;
  /** Such as `Q4_K_M`. `auto` selects the largest that fits. */
  readonly type: string;
};

const FORM =
  /^hf:(?:\/\/)?(?<repository>[\w.-]+\/[\w.-]+)(?::(?<type>[\w.-]+)|\/(?<file>[^#]+))?(?:#(?<branch>.+))?$/;

/** Parses a reference. Fails with `MODEL_NOT_FOUND` for another form. `field`: the field that errors name. */
export function parseReference(reference: string, field = 'model'): HubReference {
  const { repository, type = 'auto', file = null, branch = 'main' } = FORM.exec(reference)?.groups ?? {};
  const isOutside = file?.split('/').some((part) => part === '..' || part === '') ?? false;
  if (repository === undefined || isOutside || /(^|\/)\.\.?(\/|$)/.test(repository))
    throw errorAt(
      field,
      'MODEL_NOT_FOUND',
      `expected hf:owner/repository, hf:owner/repository:Q4_K_M or hf:owner/repository/file.gguf, got ${JSON.stringify(reference.slice(0, 500))}`,
    );
  return { repository, branch, file, type };
}

export function uriOf({ repository, branch }: HubReference, file: string): string {
  return `hf:${repository}/${file}${branch === 'main' ? '' : `#${branch}`}`;
}

export function downloadFolder({ folder }: HubOptions): string {
  return path.resolve(folder ?? path.join(os.homedir(), '.cache', 'onpolicy'));
}

export function repositoryFolder({ repository, branch }: HubReference, hub: HubOptions): string {
  const name = branch === 'main' ? repository : `${repository}@${encodeURIComponent(branch)}`;
  return path.join(downloadFolder(hub), name);
}

export function fileAddress({ repository, branch }: HubReference, file: string, hub: HubOptions): string {
  const parts = [...repository.split('/'), 'resolve', branch, ...file.split('/')];
  return `${endpointOf(hub)}/${parts.map(encodeURIComponent).join('/')}`;
}

export function listAddress({ repository, branch }: HubReference, hub: HubOptions): string {
  return `${endpointOf(hub)}/api/models/${repository}/revision/${encodeURIComponent(branch)}?blobs=true`;
}

function endpointOf({ endpoint = HUB }: HubOptions): string {
  return endpoint.replace(/\/+$/, '');
}
