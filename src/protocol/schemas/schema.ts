/** The part of JSON Schema that the protocol is written in, with the few annotations of our own. */

/** Definitions by name. References are written `#/$defs/Name`, across all files of this folder. */
export type Definitions = { readonly [name: string]: Schema };

/** One JSON Schema. Everything a request can be told about a field stands here: checks, types and docs are made from it. */
export type Schema = {
  readonly $ref?: string;
  readonly type?: SchemaType | readonly SchemaType[];
  readonly enum?: readonly (string | number | boolean | null)[];
  readonly const?: string | number | boolean;
  /** What only exists in process: a function, or an object of a built-in class, by its name. */
  readonly kind?: Kind;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly minLength?: number;
  readonly pattern?: string;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly properties?: { readonly [field: string]: Schema };
  readonly required?: readonly string[];
  /** Absent: other fields may be there. True: they are part of the TypeScript type, too. */
  readonly additionalProperties?: boolean | Schema;
  readonly if?: Schema;
  readonly then?: Schema;
  readonly else?: Schema;
  /** What an error calls the whole of it, where that is no request. */
  readonly title?: string;
  /** What the field does: the docstring of its type and its line in the docs. */
  readonly description?: string;
  /** What stands for an absent field. */
  readonly default?: string | number | boolean | null | readonly string[] | Readonly<Record<string, never>>;
  /** Bounds that a rule in code checks, for the docs. */
  readonly bounds?: string;
  /** Null is a value of its own, not "as if absent". */
  readonly keepsNull?: boolean;
  /** Its value is in no error. */
  readonly secret?: boolean;
  /** Ends the sentence "expected ..." where the keywords alone do not read well. */
  readonly expected?: string;
  /** The TypeScript type, where it says more than the schema: values that only exist in process, a union of definitions. */
  readonly tsType?: string;
};

/** Values that JSON does not have. */
type Kind =
  | 'function'
  | 'Float32Array'
  | 'Float64Array'
  | 'Int32Array'
  | 'Uint8Array'
  | 'AbortSignal'
  | 'RegExp';

type SchemaType = 'string' | 'number' | 'integer' | 'boolean' | 'array' | 'object' | 'null';

/** A reference to a definition, described where it is used. */
export function ref(name: string, description?: string, more: More = {}): Schema {
  return { $ref: `#/$defs/${name}`, ...(description === undefined ? {} : { description }), ...more };
}

export function oneOf(description: string, values: NonNullable<Schema['enum']>, more: More = {}): Schema {
  return { description, enum: values, ...more };
}

export function list(description: string, items: Schema, more: More = {}): Schema {
  return { description, type: 'array', items, ...more };
}

export function listOrNull(description: string, items: Schema, more: More = {}): Schema {
  return { description, type: ['array', 'null'], items, ...more };
}

type More = Omit<Schema, 'description'>;

/** An object with these fields and no others. */
export function object(
  description: string,
  required: readonly string[],
  properties: NonNullable<Schema['properties']>,
  more: More = {},
): Schema {
  return { type: 'object', ...branch(description, required, properties, more) };
}

/** The same, or null. None of its fields is required. */
export function objectOrNull(description: string, properties: NonNullable<Schema['properties']>): Schema {
  return object(description, [], properties, { type: ['object', 'null'] });
}

export function options(
  description: string,
  required: readonly string[],
  properties: NonNullable<Schema['properties']>,
): Schema {
  return object(description, required, properties, { title: 'options' });
}

/** An object with these fields, and any others. */
export function shape(
  description: string,
  required: readonly string[],
  properties: NonNullable<Schema['properties']>,
): Schema {
  return { description, type: 'object', ...(required.length > 0 ? { required } : {}), properties };
}

/** The same where its type is checked before: a member of a union. */
export function branch(
  description: string,
  required: readonly string[],
  properties: NonNullable<Schema['properties']>,
  more: More = {},
): Schema {
  const named = required.length > 0 ? { required } : {};
  return { description, ...named, properties, additionalProperties: false, ...more };
}

/** A member of a union that its `type` tells apart, of a tool, a part or the like. */
export function variant(
  type: string,
  what: string,
  description: string,
  required: readonly string[],
  properties: NonNullable<Schema['properties']>,
): Schema {
  const kind = { description: `Kind of the ${what}.`, const: type };
  return branch(description, ['type', ...required], { type: kind, ...properties });
}

export function string(description: string, more: More = {}): Schema {
  return { description, type: 'string', ...more };
}

export function number(description: string, more: More = {}): Schema {
  return { description, type: 'number', ...more };
}

export function boolean(description: string, more: More = {}): Schema {
  return { description, type: 'boolean', ...more };
}

/** Null stands for "as if absent", in all that end with `OrNull`. */
function orNull(type: SchemaType, description: string, more: More = {}): Schema {
  return { description, ...more, type: [type, 'null'] };
}

export function stringOrNull(description: string, more?: More): Schema {
  return orNull('string', description, more);
}

export function numberOrNull(description: string, more?: More): Schema {
  return orNull('number', description, more);
}

export function integerOrNull(description: string, more?: More): Schema {
  return orNull('integer', description, more);
}

export function booleanOrNull(description: string, more?: More): Schema {
  return orNull('boolean', description, more);
}

/** The same with a default. */
export function flagOrNull(isOn: boolean, description: string): Schema {
  return orNull('boolean', description, { default: isOn });
}

export function constant(description: string, value: string): Schema {
  return { description, const: value };
}

export function jsonObject(description: string): Schema {
  return { description, type: ['object', 'null'], tsType: 'JsonObject | null' };
}

/** A function of the caller. */
export function callback(description: string, tsType?: string): Schema {
  return { description, kind: 'function', ...(tsType === undefined ? {} : { tsType }) };
}

/** What holds where `test` does, and what where it does not. */
export function when(test: Schema, then: Schema, otherwise?: Schema): Schema {
  return { if: test, then, ...(otherwise ? { else: otherwise } : {}) };
}

/** An object whose `type` says which definition it follows. */
export function kinds(
  description: string | null,
  cases: { readonly [type: string]: string },
  more: Schema = {},
): Schema {
  const properties = { type: { enum: Object.keys(cases) } };
  const about = description === null ? {} : { description };
  return { ...about, type: 'object', ...more, required: ['type'], properties, ...byField('type', cases) };
}

/** Picks the definition by the value of one field, so that only its own faults are reported; `otherwise` takes all other values. */
export function byField(
  field: string,
  cases: { readonly [value: string]: string },
  otherwise?: string,
): Schema {
  const chain = Object.entries(cases).reduceRight<Schema>(
    (rest, [value, name]) =>
      when({ required: [field], properties: { [field]: { const: value } } }, ref(name), rest),
    otherwise ? ref(otherwise) : {},
  );
  const names = [...new Set([...Object.values(cases), ...(otherwise ? [otherwise] : [])])];
  return { ...chain, tsType: names.join(' | ') };
}

export function integer(description: string, least: number, more: Schema = {}): Schema {
  return { description, type: 'integer', minimum: least, maximum: Number.MAX_SAFE_INTEGER, ...more };
}

export function flag(isOn: boolean, description: string): Schema {
  return { description, type: 'boolean', default: isOn };
}

/** A field that a client of another API may send and that changes nothing here. */
export function acceptedFrom(client: 'Anthropic' | 'Ollama' | 'OpenAI' | 'vLLM'): Schema {
  return { description: `Accepted from ${client} clients; no effect.` };
}

/** Such fields, by name. */
export function accepted(
  client: Parameters<typeof acceptedFrom>[0],
  ...names: readonly string[]
): NonNullable<Schema['properties']> {
  return Object.fromEntries(names.map((name) => [name, acceptedFrom(client)]));
}

/** Texts or token ids: one of them, or a list. */
export function textsOrIds(description: string): Schema {
  return {
    description,
    type: ['string', 'array'],
    items: {
      type: ['string', 'integer', 'array'],
      minimum: 0,
      items: { type: 'integer', minimum: 0 },
      minItems: 1,
      expected: 'a string, a token id or a non-empty list of token ids',
    },
    minItems: 1,
    bounds: 'all texts, all ids, or all lists of ids; ids of the vocabulary',
    tsType: 'string | readonly string[] | readonly number[] | readonly (readonly number[])[]',
  };
}

const allOrSome = { expected: '-1, an integer from 1 up, or null' };

/** A number of tokens to keep, or -1 for as many as there is room for. */
export const ALL_OR_SOME: More = {
  minimum: -1,
  ...allOrSome,
  ...when({ minimum: 0 }, { minimum: 1, ...allOrSome }),
};
