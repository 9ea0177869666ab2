/** Any input -> the faults that its schema finds. The only file that meets the compiled validators. */
import { distance } from 'fastest-levenshtein';
import { messageOf, OnpolicyError } from '../errors.ts';
import type { Checked } from './checked.ts';
import { closestName, type Faults, invalidRequest, pathWords, type SchemaError, toFaults } from './faults.ts';
import type { Arguments } from './generated/argument-types.ts';
import { fills } from './generated/fills.ts';
import type * as types from './generated/request-types.ts';
import * as compiled from './generated/validators.ts';

type Validator = ((input: unknown) => boolean) & { errors?: readonly SchemaError[] | null };

const validators = compiled as unknown as Readonly<Record<string, Validator>>;

/** How a request came. */
export type ValidationOptions = {
  /** Over HTTP: unknown fields are ignored. Default false: they are faults. */
  readonly wire?: boolean;
  /** With `wire`, for an input that no one else uses: unknown fields are deleted from it. */
  readonly dropUnknown?: boolean;
  /** With `wire`: unknown fields are faults nevertheless. */
  readonly refuseUnknown?: boolean;
  /** With `dropUnknown`: called with the path of each field that is deleted. */
  readonly onDropped?: (path: string) => void;
};

/** Requests that have a schema. */
export type RequestName = keyof types.Requests;

/** Where an unknown field is always a fault: constructor objects, whose keys are arguments of a call, and settings of `sft`. */
const ALWAYS_STRICT = /^\/(logits_processors\/|config$)/;

/** What happens to unknown fields. `drop` deletes them from an input without faults. */
export type UnknownFields = 'fault' | 'ignore' | 'drop';

/** Requests that have no rules beside their schema. */
type PlainRequest = Exclude<
  RequestName,
  'ChatCompletionRequest' | 'TextCompletionRequest' | 'TrainingJobRequest' | 'SftRequest' | 'LogRequest'
>;

/**
 * Checks an input that has no rules beside its schema.
 * @throws OnpolicyError `INVALID_REQUEST` with all faults
 */
export function checkRequest<Name extends PlainRequest>(
  name: Name,
  input: unknown,
  options: ValidationOptions,
): types.Requests[Name] {
  return readingInput(input, () => {
    const faults = schemaFaults(name, input, unknownFields(options), options.onDropped);
    if (faults.count > 0) throw invalidRequest(faults);
    return input as types.Requests[Name];
  });
}

/** The same as a function of one kind of inputs. */
export function checkOf<Name extends PlainRequest>(name: Name) {
  return (input: unknown, options: ValidationOptions = {}): Checked<types.Requests[Name]> =>
    checkRequest(name, input, options) as Checked<types.Requests[Name]>;
}

/**
 * Checks arguments of a function, or settings, against their schema. `at`: what the caller calls them, before the paths of their fields.
 * @throws OnpolicyError `INVALID_REQUEST` with all faults
 */
export function checkArguments<Name extends keyof Arguments>(
  name: Name,
  input: unknown,
  at: readonly string[] = [],
): Arguments[Name] {
  return readingInput(input, () => {
    const faults = schemaFaults(name, input, 'fault');
    if (faults.count > 0) throw invalidRequest(at.length === 0 ? faults : under(at, faults));
    return input as Arguments[Name];
  });
}

/** The same faults of a part of what the caller gave. */
function under(at: readonly string[], { listed, count }: Faults): Faults {
  const prefix = `${at.join('.')}.`;
  return {
    listed: listed.map(({ loc, msg, ...rest }) => ({ ...rest, loc: [...at, ...loc], msg: prefix + msg })),
    count,
  };
}

/** Checked arguments or settings with every field: what is given, else the default that the schema has, else null. */
export type Complete = { readonly [Name in keyof typeof fills]: Readonly<ReturnType<(typeof fills)[Name]>> };

/** Fills in the defaults of checked arguments or settings. */
export function withDefaults<Name extends keyof Arguments & keyof Complete>(
  name: Name,
  given?: Arguments[Name] | null,
): Complete[Name] {
  return fills[name]((given ?? {}) as never) as Complete[Name];
}

export function schemaFaults(
  name: RequestName | keyof Arguments,
  input: unknown,
  unknown: UnknownFields,
  onDropped?: (path: string) => void,
): Faults {
  const validator = validators[name]!;
  if (validator(input)) return { listed: [], count: 0 };
  const errors = validator.errors!;
  validator.errors = null; // errors hold the caller's values
  const faults = toFaults(errors.filter((error) => !isPardoned(error, unknown)));
  if (unknown === 'drop' && faults.count === 0) for (const error of errors) dropField(error, onDropped);
  return faults;
}

function dropField(
  { keyword, instancePath, params, data }: SchemaError,
  onDropped?: (path: string) => void,
): void {
  if (keyword !== 'additionalProperties') return;
  const name = String(params['additionalProperty']);
  delete (data as Record<string, unknown>)[name];
  onDropped?.(`${instancePath.slice(1).replaceAll('/', '.')}.${name}`.replace(/^\./, ''));
}

/** How validation treats unknown fields. */
export function unknownFields({ wire, dropUnknown, refuseUnknown }: ValidationOptions): UnknownFields {
  if (!wire || refuseUnknown) return 'fault';
  return dropUnknown ? 'drop' : 'ignore';
}

function isPardoned(error: SchemaError, unknown: UnknownFields): boolean {
  const { keyword, instancePath, params, data, parentSchema } = error;
  if (keyword !== 'additionalProperties') return false;
  const name = String(params['additionalProperty']);
  // What an object inherits is not given: an AbortController is a call's options, too.
  if (!Object.hasOwn(data as object, name) || (data as Record<string, unknown>)[name] === undefined)
    return true;
  if (unknown === 'fault' || ALWAYS_STRICT.test(instancePath)) return false;
  return unknown === 'ignore' || !isMisspelt(name, Object.keys(parentSchema.properties ?? {}));
}

/** Whether a name is most likely meant to be a known one. Short names are near too many others. */
function isMisspelt(name: string, known: readonly string[]): boolean {
  const near = name.length < 4 ? null : closestName(name, known);
  if (near === null || near.length < 4) return false;
  const plain = (text: string): string => text.toLowerCase().replaceAll(/[_-]/g, '');
  return distance(plain(name), plain(near)) <= (near.length < 8 ? 1 : 2);
}

/** Checks an input. What the input itself throws while it is read, a getter for example, becomes a fault at its place. */
export function readingInput<T>(input: unknown, check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (error instanceof OnpolicyError) throw error;
    const loc = unreadablePath(input) ?? [];
    const msg = `${pathWords(loc)}: expected a value that can be read, got ${messageOf(error).slice(0, 200)}`;
    throw new OnpolicyError('INVALID_REQUEST', msg, { cause: error, detail: [{ loc, msg, type: 'value' }] });
  }
}

/** The place of the first value that throws when it is read; null if none does. */
function unreadablePath(value: unknown, seen = new Set<unknown>()): string[] | null {
  if (typeof value !== 'object' || value === null || seen.has(value)) return null;
  seen.add(value);
  let key: string | null = null;
  try {
    Object.prototype.toString.call(value); // reads the tag of a proxy
    for (key of Object.keys(value)) {
      const inner = unreadablePath((value as Record<string, unknown>)[key], seen);
      if (inner) return [key, ...inner];
    }
    return null;
  } catch {
    return key === null ? [] : [key];
  }
}
