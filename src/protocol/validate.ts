/** Any input -> the faults that its schema finds. The only file that checks against schemas. */
import { distance } from 'fastest-levenshtein';
import { messageOf, OnpolicyError } from '../errors.ts';
import type { Checked } from './checked.ts';
import { closestName, type Faults, invalidRequest, pathWords, toFaults } from './faults.ts';
import type { Arguments } from './generated/argument-types.ts';
import { fills } from './generated/fills.ts';
import type * as types from './generated/request-types.ts';
import { MOST_ERRORS, type SchemaError, schemaErrors } from './schema-check.ts';
import type { Schema } from './schemas/schema.ts';

/** How a request arrived, and the treatment of its unknown fields. */
export type ValidationOptions = {
  /** True for requests over HTTP, whose unknown fields are ignored. Default false: they are faults. */
  readonly wire?: boolean;
  /** With `wire`: unknown fields are deleted from the input, which must therefore not be used elsewhere. */
  readonly dropUnknown?: boolean;
  /** With `wire`: unknown fields are faults nevertheless. */
  readonly refuseUnknown?: boolean;
  /** With `dropUnknown`: called with the path of each field that is deleted. */
  readonly onDropped?: (path: string) => void;
};

/** Requests that have a schema. */
export type RequestName = keyof types.Requests;

/** Paths at which an unknown field is always a fault: constructor objects, whose keys are arguments, and settings of `sft`. */
function isAlwaysStrict(path: readonly string[]): boolean {
  return path.length === 1 ? path[0] === 'config' : path[0] === 'logits_processors';
}

/** Treatment of unknown fields. `drop` deletes them from an input that has no faults. */
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

/** Returns {@link checkRequest} for one kind of input. */
export function checkOf<Name extends PlainRequest>(name: Name) {
  return (input: unknown, options: ValidationOptions = {}): Checked<types.Requests[Name]> =>
    checkRequest(name, input, options) as Checked<types.Requests[Name]>;
}

/**
 * Checks arguments of a function, or settings, against their schema. `at` is their path in the caller's input.
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

/** Returns the faults with a prefix added to their paths. */
function under(at: readonly string[], { listed, count }: Faults): Faults {
  const prefix = `${at.join('.')}.`;
  return {
    listed: listed.map(({ loc, msg, ...rest }) => ({ ...rest, loc: [...at, ...loc], msg: prefix + msg })),
    count,
  };
}

/** Checked arguments or settings with every field: the given value, otherwise the default of the schema, otherwise null. */
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
  const errors = schemaErrors(name, input);
  if (errors.length === 0) return { listed: [], count: 0 };
  const names: UnknownNames = { count: 0, misspelt: new Map() };
  const faults = toFaults(errors.filter((error) => !isPardoned(error, unknown, names)));
  if (errors.length === MOST_ERRORS && faults.count === 0) return toFaults(errors.slice(0, 1));
  if (unknown === 'drop' && faults.count === 0) for (const error of errors) dropField(error, onDropped);
  return faults;
}

function dropField({ keyword, path, field, value }: SchemaError, onDropped?: (path: string) => void): void {
  if (keyword !== 'additionalProperties') return;
  delete (value as Record<string, unknown>)[field!];
  onDropped?.([...path, field].join('.'));
}

/** Returns the treatment of unknown fields. */
export function unknownFields({ wire, dropUnknown, refuseUnknown }: ValidationOptions): UnknownFields {
  if (!wire || refuseUnknown) return 'fault';
  return dropUnknown ? 'drop' : 'ignore';
}

/** Most unknown names of one input that are compared with all known names. Each further one is a fault. */
const MOST_NAMES = 1000;

/** Unknown names by the schema of their object, each with true if it is misspelt. */
type UnknownNames = {
  count: number;
  readonly misspelt: Map<Schema, Map<string, boolean>>;
};

function isPardoned(error: SchemaError, unknown: UnknownFields, names: UnknownNames): boolean {
  const { keyword, path, value, schema } = error;
  if (keyword !== 'additionalProperties') return false;
  const name = error.field!;
  // Inherited properties and undefined values count as absent: an AbortController may be passed as a call's options.
  if (!Object.hasOwn(value as object, name) || (value as Record<string, unknown>)[name] === undefined)
    return true;
  if (unknown === 'fault' || isAlwaysStrict(path)) return false;
  if (unknown === 'ignore') return true;
  const here = names.misspelt.get(schema) ?? new Map<string, boolean>();
  names.misspelt.set(schema, here);
  let isWrong = here.get(name);
  if (isWrong === undefined) {
    if (names.count === MOST_NAMES) return false;
    names.count += 1;
    isWrong = isMisspelt(name, Object.keys(schema.properties ?? {}));
    here.set(name, isWrong);
  }
  return !isWrong;
}

/** Returns true if a name is most likely a misspelt known name. False for short names, which are close to too many others. */
function isMisspelt(name: string, known: readonly string[]): boolean {
  const near = name.length < 4 ? null : closestName(name, known);
  if (near === null || near.length < 4) return false;
  const plain = (text: string): string => text.toLowerCase().replaceAll(/[_-]/g, '');
  return distance(plain(name), plain(near)) <= (near.length < 8 ? 1 : 2);
}

/** Checks an input. If reading it throws, for example in a getter, throws `INVALID_REQUEST` with the path of that value. */
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

/** Returns the path of the first value that throws when it is read, or null if none does. */
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
