/** The schema of a tool's parameters -> the JSON types of a parameter. */
import { isObject } from '../../common/index.ts';

/** The JSON types of a parameter. Null if the schema does not restrict them. */
export type ParameterTypes = ReadonlySet<string> | null;

/** Maximum number of schemas visited for one parameter, because references may be circular and branch. */
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

/** A schema inside the schema of a tool's parameters (`root`), to which its references point. */
export type Typed = { readonly schema: unknown; readonly root: unknown };

/** Returns the types of the parameter `name` by the schema of a tool's parameters. */
export function parameterTypes(parameters: unknown, name: string): ParameterTypes {
  return typesOf(inside({ schema: parameters, root: parameters }, name));
}

/** Returns the schema of a property, or of the items if `name` is null. */
export function inside({ schema, root }: Typed, name: string | null): Typed {
  for (let left = MAX_SCHEMAS; left > 0 && isObject(schema) && typeof schema['$ref'] === 'string'; left--)
    schema = resolve(schema['$ref'], root);
  if (!isObject(schema)) return { schema: null, root };
  const { items, properties, additionalProperties } = schema;
  return { schema: name === null ? items : (ownValue(properties, name) ?? additionalProperties), root };
}

/** Returns the JSON types that a schema allows. */
export function typesOf({ schema, root }: Typed): ParameterTypes {
  return collectTypes(schema, root, { left: MAX_SCHEMAS });
}

/** Returns true if the parameter can only be a string, so that its text needs no parsing. */
export function isStringOnly(types: ParameterTypes): boolean {
  return types?.size === 1 && types.has('string');
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

/** Returns the JSON type of a JSON text. */
export function typeOfJson(json: string): string {
  if (json.startsWith('{')) return 'object';
  if (json.startsWith('[')) return 'array';
  if (json.startsWith('"')) return 'string';
  if (json === 'true' || json === 'false') return 'boolean';
  if (json === 'null') return 'null';
  return Number.isInteger(Number(json)) ? 'integer' : 'number';
}
