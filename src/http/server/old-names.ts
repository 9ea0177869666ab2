/** A body with older names of fields -> the same with those of today, which mean the same. */
import { type ErrorDetail, OnpolicyError } from '../../errors.ts';

/** Older name -> field of `structured_outputs`. */
const GUIDED: Readonly<Record<string, string>> = {
  guided_json: 'json',
  guided_regex: 'regex',
  guided_choice: 'choice',
  guided_grammar: 'grammar',
};

/** Renames in place. Throws `INVALID_REQUEST` for an older name beside the one of today. */
export function renameOldFields(body: unknown): void {
  if (typeof body !== 'object' || body === null) return;
  const request = body as Record<string, unknown>;
  for (const [old, field] of Object.entries(GUIDED)) {
    const value = take(request, old);
    if (value === null) continue;
    if ((request['structured_outputs'] ?? null) !== null) refuse(old, 'structured_outputs', value);
    request['structured_outputs'] = { [field]: value };
  }
  const xargs = take(request, 'vllm_xargs');
  if (xargs === null) return;
  if ((request['inference_xargs'] ?? null) !== null) refuse('vllm_xargs', 'inference_xargs', xargs);
  request['inference_xargs'] = xargs;
}

/** The same for the settings of a training job. */
export function renameOldSettings(body: unknown): void {
  const settings = ((body ?? {}) as { experimental_config?: unknown }).experimental_config;
  if (typeof settings !== 'object' || settings === null) return;
  const config = settings as Record<string, unknown>;
  const tau = take(config, 'kimi_k2_tau');
  if (tau === null) return;
  if ((config['variant_k2_tau'] ?? null) !== null) refuse('kimi_k2_tau', 'variant_k2_tau', tau);
  config['variant_k2_tau'] = tau;
}

function take(request: Record<string, unknown>, name: string): unknown {
  if (!Object.hasOwn(request, name)) return null;
  const value = request[name];
  delete request[name];
  return value;
}

function refuse(old: string, field: string, input: unknown): never {
  const msg = `${old}: expected nothing beside ${field}, which means the same`;
  const detail: ErrorDetail[] = [{ loc: [old], msg, type: 'conflict', input }];
  throw new OnpolicyError('INVALID_REQUEST', msg, { detail });
}
