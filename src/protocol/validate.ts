/** Any input -> the faults that its schema finds. The only file that meets the compiled validators. */
import type { ErrorDetail } from '../errors.ts';
import { type SchemaError, toFaults } from './faults.ts';
import { ChatCompletionRequest } from './generated/validators.ts';

type Validator = ((input: unknown) => boolean) & { errors?: readonly SchemaError[] | null };

const validators = { ChatCompletionRequest };

/** Requests that have a schema. */
export type RequestName = keyof typeof validators;

/** Where an unknown field is a fault also over HTTP: constructor objects, whose keys are arguments of a call. */
const ALWAYS_STRICT = /^\/logits_processors\//;

/** Checks an input against its schema. `ignoreUnknown`: unknown fields are no faults. */
export function schemaFaults(name: RequestName, input: unknown, ignoreUnknown: boolean): ErrorDetail[] {
  const validator = validators[name] as unknown as Validator;
  if (validator(input)) return [];
  const errors = validator.errors!;
  validator.errors = null; // errors hold the caller's values
  return toFaults(errors.filter((error) => !isPardoned(error, ignoreUnknown)));
}

function isPardoned({ keyword, instancePath, params, data }: SchemaError, ignoreUnknown: boolean): boolean {
  if (keyword !== 'additionalProperties') return false;
  if (ignoreUnknown && !ALWAYS_STRICT.test(instancePath)) return true;
  return (data as Record<string, unknown>)[String(params['additionalProperty'])] === undefined;
}
