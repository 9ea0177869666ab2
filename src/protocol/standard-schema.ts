/** Schemas of other libraries in a request -> JSON Schemas in their places, and what reads an answer. */
import { isObject } from '../common/index.ts';
import type { ErrorDetail } from '../errors.ts';
import { fault, throwFaults } from './faults.ts';
import type { JsonObject, JsonSchemaResponseFormat } from './generated/request-types.ts';
import type { StandardIssue, StandardSchema } from './standard-types.ts';

/** Reads the JSON of an answer. */
export type ValueReader = (value: unknown) => unknown;

/** Key of the reader of a format. Clones and JSON leave it out, so only the caller's process has it. */
const READER: unique symbol = Symbol('onpolicy.reader');

/** A `response_format` made by {@link schema}. `Parsed` is the type of `parsed` in answers. */
export interface TypedFormat<Parsed> extends JsonSchemaResponseFormat {
  /** Reads the JSON value of an answer. */
  readonly [READER]: (value: unknown) => Parsed | Promise<Parsed>;
}

/**
 * Returns a `response_format` from a schema of zod, valibot, arktype or another library with `~standard.jsonSchema`, or from a JSON Schema
 * and a type: `schema<Person>({ type: 'object', ... })`. Answers then have `parsed`: their JSON, read by the same schema. Objects whose
 * schema does not say whether they may have further properties have none.
 * @param name no effect; for servers that want one
 * @throws OnpolicyError `INVALID_REQUEST` for anything else, or a schema that has no JSON Schema
 */
export function schema<Output>(given: StandardSchema<Output>, name?: string): TypedFormat<Output>;
export function schema<Output = unknown>(given: JsonObject, name?: string): TypedFormat<Output>;
export function schema(given: StandardSchema | JsonObject, name = 'answer'): TypedFormat<unknown> {
  const faults: ErrorDetail[] = [];
  const json = toJsonSchema(['schema'], given, faults);
  if (!isObject(given) && !isStandard(given)) faults.push(fault(['schema'], 'type', EXPECTED, given));
  throwFaults(faults);
  return {
    type: 'json_schema',
    json_schema: { name, schema: json as JsonObject },
    [READER]: readerOf(given),
  };
}

/** Returns what reads the answers to a request, if its format came from a schema of another library or from {@link schema}. */
export function readerOfRequest(request: unknown): ValueReader | null {
  const format = (request as { response_format?: unknown } | null)?.response_format;
  return (format as Partial<TypedFormat<unknown>> | null | undefined)?.[READER] ?? null;
}

/**
 * Returns the request with JSON Schemas in place of schemas of other libraries; the same object if it has none. Throws `INVALID_REQUEST` for
 * instances of other classes in these places, which would count as schemas that allow everything.
 */
export function withJsonSchemas<Request>(request: Request): Request {
  if (!isObject(request)) return request;
  const faults: ErrorDetail[] = [];
  const changed: Record<string, unknown> = {};
  for (const [field, places] of PLACES) {
    const given = request[field];
    if (typeof given !== 'object' || given === null) continue;
    const made = Array.isArray(given)
      ? mapped(given, (item: unknown, i) => replaced(item, places, [field, String(i)], faults))
      : replaced(given, places, [field], faults);
    if (made !== given) changed[field] = made;
  }
  throwFaults(faults);
  return Object.keys(changed).length === 0 ? request : { ...request, ...changed };
}

/** Fields of chat requests with JSON Schemas, and the paths of these in the field or in each of its items. */
const PLACES: readonly (readonly [string, readonly (readonly string[])[]])[] = [
  ['response_format', [['json_schema', 'schema'], ['schema']]],
  ['structured_outputs', [['json']]],
  ['tools', [['function', 'parameters']]],
  ['functions', [['parameters']]],
];

const EXPECTED = 'a JSON Schema as a plain object, or a schema with ~standard.jsonSchema';
/** Libraries whose schemas have no JSON Schema of their own, and what makes one. */
const CONVERTERS: Readonly<Record<string, string>> = {
  valibot:
    "expected a schema with ~standard.jsonSchema: toStandardJsonSchema(...) of '@valibot/to-json-schema' makes one",
};

function replaced(
  item: unknown,
  places: readonly (readonly string[])[],
  loc: readonly string[],
  faults: ErrorDetail[],
): unknown {
  let made = item;
  for (const place of places) made = replacedAt(made, place, loc, faults);
  return made;
}

function replacedAt(
  value: unknown,
  path: readonly string[],
  loc: readonly string[],
  faults: ErrorDetail[],
): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return toJsonSchema(loc, value, faults);
  if (!isObject(value)) return value;
  const given = value[name];
  const made = replacedAt(given, rest, [...loc, name], faults);
  if (made === given) return value;
  const isFormat = loc.length === 1 && loc[0] === 'response_format' && !(READER in value);
  const schemaOf = isFormat ? innermost(value) : null;
  return { ...value, [name]: made, ...(isStandard(schemaOf) ? { [READER]: readerOf(schemaOf) } : {}) };
}

/** Returns the schema of a format. */
function innermost(format: Record<string, unknown>): unknown {
  return (format['json_schema'] as Record<string, unknown> | undefined)?.['schema'] ?? format['schema'];
}

/** Maps a list; returns the same one if no item changed. */
function mapped(items: readonly unknown[], map: (item: unknown, i: number) => unknown): readonly unknown[] {
  const made = items.map(map);
  return made.some((item, i) => item !== items[i]) ? made : items;
}

function isStandard(value: unknown): value is StandardSchema {
  const isHolder = (typeof value === 'object' && value !== null) || typeof value === 'function'; // arktype's are functions
  return isHolder && '~standard' in value;
}

/** Returns the JSON Schema of a schema, or the value itself if it is none of another library. */
function toJsonSchema(loc: readonly string[], value: unknown, faults: ErrorDetail[]): unknown {
  if (isStandard(value)) {
    const { jsonSchema, vendor } = value['~standard'] as Partial<StandardSchema['~standard']>;
    if (!jsonSchema)
      faults.push(fault(loc, 'type', CONVERTERS[vendor ?? ''] ?? EXPECTED, `one of ${vendor} without it`));
    else
      try {
        return closed(jsonSchema.input({ target: 'draft-2020-12' }));
      } catch (error) {
        faults.push(fault(loc, 'value', 'a schema that has a JSON Schema', (error as Error).message));
      }
    return value;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null; // also of another realm
  if (!isPlain) faults.push(fault(loc, 'type', EXPECTED, `an instance of ${value.constructor?.name}`));
  return value;
}

function readerOf(given: StandardSchema | JsonObject): ValueReader {
  if (!isStandard(given)) return (value) => value;
  return async (value) => {
    const result = await given['~standard'].validate(value);
    if (!result.issues) return result.value;
    throw new AnswerIssues(result.issues);
  };
}

/** Thrown by the reader of an answer: what its schema says is wrong. */
export class AnswerIssues extends Error {
  readonly detail: readonly ErrorDetail[];

  constructor(issues: readonly StandardIssue[]) {
    const detail = issues.map(({ message, path = [] }) => ({
      loc: path.map((part) => String(typeof part === 'object' ? part.key : part)),
      msg: message,
      type: 'value',
    }));
    super(detail.map(({ loc, msg }) => (loc.length === 0 ? msg : `${loc.join('.')}: ${msg}`)).join('; '));
    this.detail = detail;
  }
}

/** Keywords beside which an object cannot be closed on its own: others of its properties may be declared there. */
const COMBINED = ['allOf', 'anyOf', 'oneOf', '$ref', 'if', 'not', 'dependentSchemas'];

/**
 * Returns a JSON Schema whose objects have no properties but those that they declare, where the schema does not say. Every value that fits it
 * fits the given one, and a model does not invent properties that a reader drops.
 */
function closed(given: Record<string, unknown>): Record<string, unknown> {
  if (JSON.stringify(given).includes('"allOf"')) return given; // a part of a whole that is declared elsewhere
  return close(given) as Record<string, unknown>;
}

function close(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(close);
  if (!isObject(value)) return value;
  const made: Record<string, unknown> = {};
  for (const [name, inner] of Object.entries(value)) {
    if (SCHEMA_MAPS.includes(name) && isObject(inner))
      made[name] = Object.fromEntries(Object.entries(inner).map(([key, one]) => [key, close(one)]));
    else made[name] = SCHEMAS.includes(name) ? close(inner) : inner;
  }
  const declares = isObject(value['properties']) && !('patternProperties' in value);
  const isOpen = !('additionalProperties' in value) && !('unevaluatedProperties' in value);
  if (declares && isOpen && !COMBINED.some((keyword) => keyword in value))
    made['additionalProperties'] = false;
  return made;
}

const SCHEMA_MAPS = ['properties', '$defs', 'definitions'];
const SCHEMAS = ['items', 'prefixItems', 'anyOf', 'oneOf', 'additionalProperties'];
