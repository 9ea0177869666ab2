/** A body with former names of fields -> the same body with the current names. */
import { type ErrorDetail, OnpolicyError } from '../../../errors.ts';

type Fields = Record<string, unknown>;

/** Renames fields in place. Throws `INVALID_REQUEST` if a body has both a former name and the current one. */
export function renameOldFields(body: unknown): void {
  for (const kind of ['json', 'regex', 'choice', 'grammar'])
    rename(body, `guided_${kind}`, 'structured_outputs', (value) => ({ [kind]: value }));
  rename(body, 'vllm_xargs', 'inference_xargs');
}

/** Renames the settings of a training job in the same way. */
export function renameOldSettings(body: unknown): void {
  rename((body as Fields | null)?.['experimental_config'], 'kimi_k2_tau', 'variant_k2_tau');
}

/** Moves a value to the current name. `toValue`: converts it to the current form. */
function rename(
  given: unknown,
  old: string,
  field: string,
  toValue = (value: unknown): unknown => value,
): void {
  if (typeof given !== 'object' || given === null || !Object.hasOwn(given, old)) return;
  const fields = given as Fields;
  const value = fields[old];
  delete fields[old];
  if (value === null) return;
  if ((fields[field] ?? null) !== null) {
    const msg = `${old}: expected no value with ${field}, which means the same`;
    const detail: ErrorDetail[] = [{ loc: [old], msg, type: 'conflict', input: value }];
    throw new OnpolicyError('INVALID_REQUEST', msg, { detail });
  }
  fields[field] = toValue(value);
}
