/** Any input -> the faults that its schema finds. The only file that meets the compiled validators. */
import { OnpolicyError } from '../errors.ts';
import { type Faults, type SchemaError, toFaults } from './faults.ts';
import {
  ChatCompletionRequest,
  CheckpointDeleteRequest,
  ListQuery,
  LogRequest,
  ModelCreateRequest,
  TrainingJobRequest,
} from './generated/validators.ts';

type Validator = ((input: unknown) => boolean) & { errors?: readonly SchemaError[] | null };

const validators = {
  ChatCompletionRequest,
  CheckpointDeleteRequest,
  ListQuery,
  LogRequest,
  ModelCreateRequest,
  TrainingJobRequest,
};

/** Requests that have a schema. */
export type RequestName = keyof typeof validators;

/** Where an unknown field is a fault also over HTTP: constructor objects, whose keys are arguments of a call. */
const ALWAYS_STRICT = '/logits_processors/';

/** Checks an input against its schema. `ignoreUnknown`: unknown fields are no faults. */
export function schemaFaults(name: RequestName, input: unknown, ignoreUnknown: boolean): Faults {
  const validator = validators[name] as unknown as Validator;
  if (validator(input)) return { listed: [], count: 0 };
  const errors = validator.errors!;
  validator.errors = null; // errors hold the caller's values
  return toFaults(errors.filter((error) => !isPardoned(error, ignoreUnknown)));
}

/**
 * Takes the fields that nobody knows out of a request that came over HTTP and was found valid, in place: behind the door
 * they would be faults.
 */
export function dropUnknownFields(name: RequestName, input: unknown): void {
  const validator = validators[name] as unknown as Validator;
  if (validator(input)) return;
  const errors = validator.errors!;
  validator.errors = null;
  for (const { keyword, params, data } of errors)
    if (keyword === 'additionalProperties')
      delete (data as Record<string, unknown>)[String(params['additionalProperty'])];
}

function isPardoned({ keyword, instancePath, params, data }: SchemaError, ignoreUnknown: boolean): boolean {
  if (keyword !== 'additionalProperties') return false;
  if (ignoreUnknown && !instancePath.startsWith(ALWAYS_STRICT)) return true;
  return (data as Record<string, unknown>)[String(params['additionalProperty'])] === undefined;
}

/** Runs a check. What the input itself throws while it is read, a getter for example, becomes a fault of the caller. */
export function atTheDoor<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (error instanceof OnpolicyError) throw error;
    throw new OnpolicyError('INVALID_REQUEST', `the request cannot be read: ${String(error)}`, {
      cause: error,
    });
  }
}
