/** Names of weights and samplers <-> Tinker's paths and ids, which need no memory of the server. */
import { parseJson } from '../../../common/index.ts';
import { errorAt } from '../../../errors.ts';

/** The model and the weights of a sampling session. */
export type Sampler = {
  /** Name of the model in requests. */
  readonly model: string;
  readonly base_model: string;
  readonly model_path: string | null;
};

/** Returns the path of a saved state of a run. */
export function statePath(run: string, name: string): string {
  return `tinker://${run}/weights/${name}`;
}

/** Returns the path of weights that answer requests: their name, and their step of the model. */
export function samplerPath(run: string, name: string, published: string): string {
  return `tinker://${run}/sampler_weights/${name}${published.slice(published.lastIndexOf('@'))}`;
}

/** Reads the path of a saved state. Throws `INVALID_REQUEST`, naming `field`. */
export function readStatePath(path: string, field: string): { readonly run: string; readonly name: string } {
  const [, run, name] = /^tinker:\/\/([^/]+)\/weights\/([^/]+)$/.exec(path) ?? [];
  if (run && name) return { run, name };
  throw errorAt(
    field,
    'INVALID_REQUEST',
    `expected a path that save_weights returned, got ${path.slice(0, 200)}`,
  );
}

/** Reads the path of weights that answer requests. Throws `INVALID_REQUEST`, naming `field`. */
export function readSamplerPath(
  path: string,
  field: string,
): { readonly run: string; readonly step: string } {
  const [, run, step] = /^tinker:\/\/([^/]+)\/sampler_weights\/[^/@]+@(\d+)$/.exec(path) ?? [];
  if (run && step) return { run, step };
  throw errorAt(
    field,
    'INVALID_REQUEST',
    `expected a path that save_weights_for_sampler returned, got ${path.slice(0, 200)}`,
  );
}

/** Returns the run that a path names. */
export function runOf(path: string): string {
  return path.split('/')[2]!;
}

/** Returns the id of a sampling session. `owner`: the session or model, of which it is number `seq`. */
export function samplerId(owner: string, seq: number, sampler: Sampler): string {
  return `${owner}:sample:${seq}:${Buffer.from(JSON.stringify(sampler)).toString('base64url')}`;
}

/** Reads the id of a sampling session. Throws `NOT_FOUND`, naming `field`. */
export function readSamplerId(id: string, field: string): Sampler {
  const sampler = parseJson(Buffer.from(id.slice(id.lastIndexOf(':') + 1), 'base64url').toString(), null);
  const { model, base_model, model_path } = (sampler ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof model === 'string' && typeof base_model === 'string')
    return { model, base_model, model_path: typeof model_path === 'string' ? model_path : null };
  throw errorAt(field, 'NOT_FOUND', `there is no sampling session ${id.slice(0, 200)}`);
}
