/**
 * JSON Schemas -> functions that find all errors of a value, in the order in which ajv finds them. Each is made at its first use. No
 * code is made from text, which Electron would refuse.
 */
import { checkedSchemas } from './generated/checked-schemas.ts';
import type { Schema } from './schemas/schema.ts';

/** Definitions that have a check. */
export type CheckedName = keyof typeof checkedSchemas;

/** A value that breaks one keyword of its schema. */
export type SchemaError = {
  readonly keyword: keyof Schema;
  readonly path: readonly string[];
  /** With `required` and `additionalProperties`, the field that is missing or not known. */
  readonly field: string | null;
  readonly schema: Schema;
  readonly value: unknown;
};

/** Most errors that one check collects: a hostile input can have as many as it has bytes. */
export const MOST_ERRORS = 2 ** 20;

type Check = (value: unknown, found: Findings) => void;

const checks = new Map<CheckedName, Check>();

/** Returns the errors of a value, at most `MOST_ERRORS`. */
export function schemaErrors(name: CheckedName, value: unknown): readonly SchemaError[] {
  const found = new Findings();
  try {
    checkNamed(name)(value, found);
  } catch (error) {
    if (error !== found) throw error;
  }
  return found.errors;
}

/** The errors that a check found so far, and the path of the value that it looks at. */
class Findings {
  readonly errors: SchemaError[] = [];
  readonly path: (string | number)[] = [];
  private conditions = 0;
  private isUnmet = false;

  /** Throws itself if there are too many. */
  add(keyword: keyof Schema, schema: Schema, value: unknown, field: string | null = null): void {
    this.isUnmet = true;
    if (this.conditions > 0) return;
    const count = this.errors.push({ keyword, path: this.path.map(String), field, schema, value });
    if (count >= MOST_ERRORS) throw this;
  }

  /** Returns true if a value has no errors, which are not kept. */
  meets(condition: Check, value: unknown): boolean {
    const wasUnmet = this.isUnmet;
    this.isUnmet = false;
    this.conditions += 1;
    condition(value, this);
    this.conditions -= 1;
    const isMet = !this.isUnmet;
    this.isUnmet = wasUnmet;
    return isMet;
  }

  /** Checks a part of the value. */
  within(key: string | number, check: Check, value: unknown): void {
    this.path.push(key);
    check(value, this);
    this.path.pop();
  }
}

function checkNamed(name: CheckedName): Check {
  let check = checks.get(name);
  if (check === undefined) {
    check = toCheck(JSON.parse(checkedSchemas[name]) as Schema) ?? (() => {});
    checks.set(name, check);
  }
  return check;
}

/** Returns null for a schema that accepts all values. */
function toCheck(schema: Schema): Check | null {
  if (schema.$ref !== undefined) return checkNamed(schema.$ref.slice('#/$defs/'.length) as CheckedName);
  return allOf([
    typeCheck(schema),
    ...numberChecks(schema),
    ...textChecks(schema),
    ...valueChecks(schema),
    ...listChecks(schema),
    objectCheck(schema),
  ]);
}

function allOf(some: readonly (Check | null)[]): Check | null {
  const all = some.filter((check) => check !== null);
  const [first = null, second] = all;
  if (second === undefined) return first;
  return (value, found) => {
    for (const check of all) check(value, found);
  };
}

/** Returns a check that reports a keyword for the values that break it. Null if the schema has no such keyword. */
function keywordCheck(
  schema: Schema,
  keyword: keyof Schema,
  isBroken: (value: unknown) => boolean,
): Check | null {
  if (schema[keyword] === undefined) return null;
  return (value, found) => {
    if (isBroken(value)) found.add(keyword, schema, value);
  };
}

const TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  number: isNumber,
  integer: Number.isInteger,
  boolean: (value) => typeof value === 'boolean',
  array: Array.isArray,
  object: isObject,
  null: (value) => value === null,
};

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function typeCheck(schema: Schema): Check | null {
  const [isFirst, isSecond, ...more] = [schema.type ?? []].flat().map((type) => TYPES[type]!);
  if (isSecond === undefined) return keywordCheck(schema, 'type', (value) => !isFirst!(value));
  return keywordCheck(
    schema,
    'type',
    (value) => !isFirst!(value) && !isSecond(value) && !more.some((isOne) => isOne(value)),
  );
}

function numberChecks(schema: Schema): (Check | null)[] {
  const { maximum = 0, minimum = 0, exclusiveMinimum = 0 } = schema;
  return [
    keywordCheck(schema, 'maximum', (value) => isNumber(value) && value > maximum),
    keywordCheck(schema, 'minimum', (value) => isNumber(value) && value < minimum),
    keywordCheck(schema, 'exclusiveMinimum', (value) => isNumber(value) && value <= exclusiveMinimum),
  ];
}

function textChecks(schema: Schema): (Check | null)[] {
  const { minLength = 0, pattern = '' } = schema;
  const matches = new RegExp(pattern, 'u');
  return [
    keywordCheck(schema, 'minLength', (value) => typeof value === 'string' && value.length < minLength),
    keywordCheck(schema, 'pattern', (value) => typeof value === 'string' && !matches.test(value)),
  ];
}

/** Checks of values of any type. */
function valueChecks(schema: Schema): (Check | null)[] {
  const options: ReadonlySet<unknown> = new Set(schema.enum);
  const tag = `[object ${schema.kind}]`;
  const toTag = Object.prototype.toString;
  return [
    keywordCheck(schema, 'const', (value) => value !== schema.const),
    keywordCheck(schema, 'enum', (value) => !options.has(value)),
    branchCheck(schema),
    keywordCheck(
      schema,
      'kind',
      schema.kind === 'function'
        ? (value) => typeof value !== 'function'
        : (value) => toTag.call(value) !== tag, // of this realm or of another
    ),
  ];
}

const CONDITION: ReadonlySet<string> = new Set(['if', 'then', 'else']);

/** Only the branch that is taken reports errors. */
function branchCheck(schema: Schema): Check | null {
  if (schema.if === undefined) return null;
  const field = testedField(schema.if);
  if (field !== null) return fieldCheck(schema, field);
  const condition = toCheck(schema.if);
  const yes = toCheck(schema.then ?? {});
  const no = toCheck(schema.else ?? {});
  return (value, found) => {
    const branch = condition === null || found.meets(condition, value) ? yes : no;
    branch?.(value, found);
  };
}

/** Returns the field if a condition is that a required field has a certain value, else null. */
function testedField({ required = [], properties = {}, ...more }: Schema): string | null {
  const [name, ...others] = Object.keys(properties);
  if (name === undefined || others.length > 0 || Object.keys(more).length > 0) return null;
  const isTest = required.length === 1 && required[0] === name;
  const { const: value, ...rules } = properties[name]!;
  return isTest && value !== undefined && Object.keys(rules).length === 0 ? name : null;
}

/** Returns true if a schema is a condition and nothing else. */
function isCondition(schema: Schema): boolean {
  return schema.if !== undefined && Object.keys(schema).every((key) => CONDITION.has(key));
}

/** Looks up the branch of nested conditions on one field by its value, instead of trying one condition after the other. */
function fieldCheck(schema: Schema, field: string): Check {
  const branches = new Map<unknown, Check | null>();
  let rest: Schema = schema;
  do {
    const value = rest.if!.properties![field]!.const;
    if (!branches.has(value)) branches.set(value, toCheck(rest.then ?? {}));
    rest = rest.else ?? {};
  } while (isCondition(rest) && testedField(rest.if!) === field);
  const no = toCheck(rest);
  const [first = null] = branches.values();
  return (value, found) => {
    if (!isObject(value)) return first?.(value, found); // meets each condition, because it has no fields
    const key = value[field];
    const branch = branches.has(key) ? branches.get(key)! : no;
    branch?.(value, found);
  };
}

function listChecks(schema: Schema): (Check | null)[] {
  const { maxItems = 0, minItems = 0 } = schema;
  const item = schema.items === undefined ? null : toCheck(schema.items);
  return [
    keywordCheck(schema, 'maxItems', (value) => Array.isArray(value) && value.length > maxItems),
    keywordCheck(schema, 'minItems', (value) => Array.isArray(value) && value.length < minItems),
    item === null
      ? null
      : (value, found) => {
          if (!Array.isArray(value)) return;
          for (let i = 0; i < value.length; i++) found.within(i, item, value[i]);
        },
  ];
}

/** Undefined fields are absent, and inherited ones present. */
function objectCheck(schema: Schema): Check | null {
  const { required = [], properties = {}, additionalProperties = true } = schema;
  const known = new Set(Object.keys(properties));
  const fields = Object.entries(properties).flatMap(([name, field]) => {
    const check = toCheck(field);
    return check === null ? [] : [{ name, check }];
  });
  const other = typeof additionalProperties === 'object' ? toCheck(additionalProperties) : null;
  const isClosed = additionalProperties === false;
  if (required.length + fields.length === 0 && !isClosed && other === null) return null;
  return (value, found) => {
    if (!isObject(value)) return;
    for (const name of required) if (value[name] === undefined) found.add('required', schema, value, name);
    if (isClosed || other !== null)
      for (const name in value) {
        if (known.has(name)) continue;
        if (other === null) found.add('additionalProperties', schema, value, name);
        else found.within(name, other, value[name]);
      }
    for (const { name, check } of fields) {
      const part = value[name];
      if (part !== undefined) found.within(name, check, part);
    }
  };
}
