/** Errors of schemas -> faults that name the field, the expected value and the given value. */
import { closest, distance } from 'fastest-levenshtein';
import { clip, describe } from '../common/index.ts';
import { type ErrorDetail, OnpolicyError } from '../errors.ts';
import type { SchemaError } from './schema-check.ts';
import type { Schema } from './schemas/schema.ts';

/** Kinds of faults: the `type` of a detail entry. */
export type FaultType =
  | 'missing' // a required field is absent
  | 'type' // a value of another type
  | 'range' // a number out of its bounds
  | 'length' // a text or list that is too short or too long
  | 'value' // the right type, but none of the accepted values
  | 'unknown_field' // a field that does not exist
  | 'conflict' // fields that contradict each other
  | 'unsupported'; // refused by an option of this runtime

/** Most faults that one error lists; the message counts all. */
export const MAX_LISTED_FAULTS = 100;

/** Makes one fault. `expected` completes the sentence "field: expected ...". */
export function fault(
  loc: readonly string[],
  type: FaultType,
  expected: string,
  input: unknown,
  ctx?: ErrorDetail['ctx'],
): ErrorDetail {
  return {
    loc,
    msg: `${pathWords(loc)}: expected ${expected}, got ${describe(input)}`,
    type,
    input,
    ...(ctx ? { ctx } : {}),
  };
}

/** Returns the faults of a list's items. Only the first are described; the rest are counted, as a hostile list can have many. */
export function itemFaults<Item>(
  items: readonly Item[],
  isWrong: (item: Item) => boolean,
  toFault: (item: Item, index: number) => ErrorDetail,
): ErrorDetail[] {
  const faults: ErrorDetail[] = [];
  items.forEach((item, i) => {
    if (isWrong(item)) faults.push(faults.length < MAX_LISTED_FAULTS ? toFault(item, i) : faults[0]!);
  });
  return faults;
}

/** The faults of an input. */
export type Faults = {
  /** The first faults, at most {@link MAX_LISTED_FAULTS}. */
  readonly listed: readonly ErrorDetail[];
  /** Number of all faults. */
  readonly count: number;
};

/** Returns the error for a faulty input. Its message has the first fault and the number of faults. */
export function invalidRequest({ listed, count }: Faults): OnpolicyError {
  const rest = count - 1;
  const more = rest === 0 ? '' : ` (and ${rest} more ${rest === 1 ? 'fault' : 'faults'})`;
  return new OnpolicyError('INVALID_REQUEST', `${listed[0]!.msg}${more}`, { detail: listed });
}

/** Throws the error that lists the faults, if there are any. */
export function throwFaults(faults: readonly ErrorDetail[]): void {
  if (faults.length > 0)
    throw invalidRequest({ listed: faults.slice(0, MAX_LISTED_FAULTS), count: faults.length });
}

/** Describes the errors that will be listed. The rest are only counted, as a hostile input can have many. */
export function toFaults(errors: readonly SchemaError[]): Faults {
  return { listed: errors.slice(0, MAX_LISTED_FAULTS).map(toFault), count: errors.length };
}

function toFault(error: SchemaError): ErrorDetail {
  const made = describeFault(error);
  if (!error.schema.secret) return made;
  const { input, ...rest } = made;
  return {
    ...rest,
    msg: rest.msg.replace(/, got .*/s, `, got ${input === null ? 'null' : `a ${typeof input}`}`),
  };
}

function describeFault(error: SchemaError): ErrorDetail {
  const { keyword, schema, value } = error;
  const loc = error.path.map((step) => step.slice(0, 200));
  if (keyword === 'required') {
    const path = [...loc, error.field!];
    return {
      loc: path,
      msg: `${pathWords(path)}: this field is required, got nothing`,
      type: 'missing',
    };
  }
  if (keyword === 'additionalProperties') return unknownField(loc, error.field!, error);
  const expected = expectation(schema);
  const at = loc.length === 0 && schema.title ? [schema.title] : loc;
  switch (keyword) {
    case 'enum':
      return fault(at, 'value', expected, value, { allowed: schema.enum });
    case 'const':
      return fault(at, 'value', expected, value, { allowed: [schema.const] });
    case 'minimum':
    case 'maximum':
    case 'exclusiveMinimum':
      return fault(at, 'range', expected, value, { [keyword]: schema[keyword] });
    case 'minLength':
    case 'minItems':
    case 'maxItems':
      return fault(at, 'length', expected, value, { [keyword]: schema[keyword] });
    case 'pattern':
      return fault(at, 'value', expected, value);
    default:
      return fault(at, 'type', expected, value);
  }
}

function unknownField(parent: readonly string[], name: string, error: SchemaError): ErrorDetail {
  const loc = [...parent, clip(name, 200)];
  const value = (error.value as Record<string, unknown>)[name];
  const near = closestName(name, Object.keys(error.schema.properties ?? {}));
  const hint = near === null ? '' : `; did you mean ${near}?`;
  const where = parent.length === 0 ? (error.schema.title ?? 'a request') : parent.join('.');
  return {
    loc,
    msg: `${pathWords(loc)}: not a field of ${where}${hint}`,
    type: 'unknown_field',
    input: value,
    ...(near === null ? {} : { ctx: { closest: near } }),
  };
}

/** Returns the known name that is closest to a misspelt one, or null if none is close. Ignores letter case. */
export function closestName(name: string, known: readonly string[]): string | null {
  if (known.length === 0 || name.length > 64) return null;
  const plain = known.map((one) => one.toLowerCase());
  const near = closest(name.toLowerCase(), plain);
  const limit = Math.max(2, Math.floor(near.length / 3));
  return distance(name.toLowerCase(), near) <= limit ? known[plain.indexOf(near)]! : null;
}

/** Describes the values that a schema accepts, for example "a number from -2 to 2 or null". */
export function expectation(schema: Schema): string {
  if (schema.expected) return schema.expected;
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.kind) return `${/^[AEIO]/.test(schema.kind) ? 'an' : 'a'} ${schema.kind}`;
  const options = schema.enum
    ? schema.enum.map((value) => JSON.stringify(value))
    : [schema.type ?? []].flat().map((type) => typeWords(type, schema));
  return options.length > 1
    ? `${options.slice(0, -1).join(', ')} or ${options.at(-1)}`
    : (options[0] ?? 'a value');
}

function typeWords(type: string, schema: Schema): string {
  switch (type) {
    case 'number':
    case 'integer':
      return `${type === 'integer' ? 'an integer' : 'a number'}${rangeWords(schema)}`;
    case 'string':
      return schema.minLength ? 'a non-empty string' : 'a string';
    case 'array':
      return listWords(schema);
    case 'boolean':
      return 'true or false';
    case 'object':
      return 'an object';
    default:
      return type;
  }
}

function listWords({ minItems = 0, maxItems }: Schema): string {
  if (maxItems === undefined) return minItems > 0 ? 'a non-empty list' : 'a list';
  return `a list of ${minItems > 0 ? `${minItems} to` : 'at most'} ${maxItems}`;
}

function rangeWords({ exclusiveMinimum, ...schema }: Schema): string {
  const minimum = toBound(schema.minimum);
  const maximum = toBound(schema.maximum);
  if (minimum !== undefined)
    return maximum === undefined ? ` >= ${minimum}` : ` from ${minimum} to ${maximum}`;
  if (exclusiveMinimum === undefined) return maximum === undefined ? '' : ` <= ${maximum}`;
  return ` > ${exclusiveMinimum}${maximum === undefined ? '' : ` and <= ${maximum}`}`;
}

/** Returns a limit that is worth stating: not the limits of safe integers. */
function toBound(limit: number | undefined): number | undefined {
  return Math.abs(limit!) === Number.MAX_SAFE_INTEGER ? undefined : limit;
}

/** Returns a path for a message, shortened if it is long. */
export function pathWords(loc: readonly string[]): string {
  return loc.length === 0 ? 'request' : clip(loc.join('.'), 160);
}
