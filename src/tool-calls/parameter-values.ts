/** The text of a parameter and the tool's schema -> JSON, for families without types in the text. */
import { isObject, parseJson, type Reading, TextReader } from '../common/index.ts';
import { PYTHON, readLiteral } from './literal.ts';

/** The JSON types of a parameter; null if the schema does not restrict them. */
export type ParameterTypes = ReadonlySet<string> | null;

/** Maximum number of schemas visited for one parameter: references may be circular and branch. */
const MAX_SCHEMAS = 256;
/** Common type names that are not JSON Schema's. */
const LOOSE_TYPES: Readonly<Record<string, string>> = {
  str: 'string',
  text: 'string',
  enum: 'string',
  int: 'integer',
  float: 'number',
  double: 'number',
  bool: 'boolean',
  dict: 'object',
  list: 'array',
};

/** A schema in the schema of a tool's parameters, where its references lead. */
export type Typed = { readonly schema: unknown; readonly root: unknown };

/** The types of the parameter `name` under the schema of a tool's parameters. */
export function parameterTypes(parameters: unknown, name: string): ParameterTypes {
  return typesOf(inside({ schema: parameters, root: parameters }, name));
}

/** The schema of a property, or with null that of the items. */
export function inside({ schema, root }: Typed, name: string | null): Typed {
  for (let left = MAX_SCHEMAS; left > 0 && isObject(schema) && typeof schema['$ref'] === 'string'; left--)
    schema = resolve(schema['$ref'], root);
  if (!isObject(schema)) return { schema: null, root };
  const { items, properties, additionalProperties } = schema;
  return { schema: name === null ? items : (ownValue(properties, name) ?? additionalProperties), root };
}

/** The JSON types that a schema allows. */
export function typesOf({ schema, root }: Typed): ParameterTypes {
  return collectTypes(schema, root, { left: MAX_SCHEMAS });
}

/** Whether the parameter can only be a string, so that its text needs no parsing. */
export function isStringOnly(types: ParameterTypes): boolean {
  return types?.size === 1 && types.has('string');
}

/** The JSON text of a value. Text that fits no type becomes a string. */
export function valueToJson(text: string, types: ParameterTypes): string {
  const json = literalToJson(text.trim());
  if (json === null) return JSON.stringify(text);
  const type = typeOfJson(json);
  const isAllowed =
    types === null ? type !== 'string' : types.has(type) || (type === 'integer' && types.has('number'));
  return isAllowed || (type !== 'string' && !types?.has('string')) ? json : JSON.stringify(text);
}

function collectTypes(schema: unknown, root: unknown, budget: { left: number }): ParameterTypes {
  if (!isObject(schema) || budget.left-- <= 0) return null;
  const { $ref, type, anyOf, oneOf, allOf } = schema;
  if (typeof $ref === 'string') return collectTypes(resolve($ref, root), root, budget);
  if (typeof type === 'string') return new Set([LOOSE_TYPES[type.toLowerCase()] ?? type.toLowerCase()]);
  if (Array.isArray(type)) return new Set(type.map((one) => LOOSE_TYPES[String(one)] ?? String(one)));
  if (Array.isArray(schema['enum']))
    return new Set(schema['enum'].map((value) => typeOfJson(JSON.stringify(value))));
  if ('const' in schema) return new Set([typeOfJson(JSON.stringify(schema['const']))]);
  const branches = anyOf ?? oneOf;
  if (Array.isArray(branches)) {
    const types = branches.map((branch) => collectTypes(branch, root, budget));
    return types.includes(null) ? null : new Set(types.flatMap((one) => [...one!]));
  }
  if (Array.isArray(allOf)) {
    return allOf.map((part) => collectTypes(part, root, budget)).find((types) => types !== null) ?? null;
  }
  return null;
}

function resolve(reference: string, root: unknown): unknown {
  let at: unknown = root;
  for (const key of reference.replace(/^#\/?/, '').split('/').filter(Boolean)) {
    const name = decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~');
    at = ownValue(at, name);
  }
  return at;
}

function ownValue(object: unknown, key: string): unknown {
  return isObject(object) && Object.hasOwn(object, key) ? object[key] : undefined;
}

function literalToJson(text: string): string | null {
  if (parseJson(text) !== undefined) return text;
  const lower = text.toLowerCase();
  if (lower === 'true' || lower === 'false' || lower === 'null') return lower;
  const reader = new TextReader();
  reader.push(text);
  reader.end();
  let json = '';
  const reading: Reading = readLiteral(reader, PYTHON, (piece) => {
    json += piece;
  });
  try {
    reading.next();
  } catch {
    return null;
  }
  return reader.isAtEnd() ? json : null;
}

function typeOfJson(json: string): string {
  if (json.startsWith('{')) return 'object';
  if (json.startsWith('[')) return 'array';
  if (json.startsWith('"')) return 'string';
  if (json === 'true' || json === 'false') return 'boolean';
  if (json === 'null') return 'null';
  return Number.isInteger(Number(json)) ? 'integer' : 'number';
}
