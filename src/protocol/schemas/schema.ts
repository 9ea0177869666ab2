/** The part of JSON Schema in which the protocol is written, with a few additional annotations. */

/** Definitions by name. References are written `#/$defs/Name`, across all files of this folder. */
export type Definitions = { readonly [name: string]: Schema };

/** One JSON Schema. It is the only source of a field's checks, types and docs. */
export type Schema = {
  readonly $ref?: string;
  readonly type?: SchemaType | readonly SchemaType[];
  readonly enum?: readonly (string | number | boolean | null)[];
  readonly const?: string | number | boolean;
  /** Name of a type that exists only in process: a function, or an object of a built-in class. */
  readonly kind?: Kind;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly minLength?: number;
  readonly pattern?: string;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: { readonly [field: string]: Schema };
  readonly required?: readonly string[];
  /** If absent, other fields are allowed. If true, they are also part of the TypeScript type. */
  readonly additionalProperties?: boolean | Schema;
  readonly if?: Schema;
  readonly then?: Schema;
  readonly else?: Schema;
  /** Name of the whole value in errors, if it is not a request. */
  readonly title?: string;
  /** Description of the field, used as the docstring of its type and as its line in the docs. */
  readonly description?: string;
  /** Value of an absent field. */
  readonly default?: string | number | boolean | null | readonly string[] | Readonly<Record<string, never>>;
  /** Bounds that a rule in code checks, for the docs. */
  readonly bounds?: string;
  /** If true, null is a distinct value instead of "as if absent". */
  readonly keepsNull?: boolean;
  /** If true, errors do not contain the value. */
  readonly secret?: boolean;
  /** Ends the sentence "expected ..." in errors. Used if a text derived from the keywords does not read well. */
  readonly expected?: string;
  /** The TypeScript type, if it is more precise than the schema: values that exist only in process, a union of definitions. */
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

/** Returns a reference to a definition, with a description for this use. */
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

/** Returns an object with these fields and no others. */
export function object(
  description: string,
  required: readonly string[],
  properties: NonNullable<Schema['properties']>,
  more: More = {},
): Schema {
  return { type: 'object', ...branch(description, required, properties, more) };
}

/** Returns {@link object} or null. All fields are optional. */
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

/** Returns an object with these fields and any others. */
export function shape(
  description: string,
  required: readonly string[],
  properties: NonNullable<Schema['properties']>,
): Schema {
  return { description, type: 'object', ...(required.length > 0 ? { required } : {}), properties };
}

/** Returns {@link shape} for a member of a union, whose type is checked before. */
export function branch(
  description: string,
  required: readonly string[],
  properties: NonNullable<Schema['properties']>,
  more: More = {},
): Schema {
  const named = required.length > 0 ? { required } : {};
  return { description, ...named, properties, additionalProperties: false, ...more };
}

/** Returns a member of a union that is selected by `type`, for example a tool or a part. */
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

/** Adds null to a type. In all functions that end with `OrNull`, null means "as if absent". */
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

/** Returns a flag or null, with a default. */
export function flagOrNull(isOn: boolean, description: string): Schema {
  return orNull('boolean', description, { default: isOn });
}

export function constant(description: string, value: string): Schema {
  return { description, const: value };
}

export function jsonObject(description: string): Schema {
  return { description, type: ['object', 'null'], tsType: 'JsonObject | null' };
}

/** Returns the schema of a JSON Schema. In process it may be a schema of another library, which is replaced before the check. */
export function jsonSchema(description: string): Schema {
  return { ...jsonObject(description), tsType: 'JsonObject | StandardSchema | null' };
}

/** Returns the schema of a function that the caller passes. */
export function callback(description: string, tsType?: string): Schema {
  return { description, kind: 'function', ...(tsType === undefined ? {} : { tsType }) };
}

/** Returns a condition: `then` applies to values that match `test`, `otherwise` to all others. */
export function when(test: Schema, then: Schema, otherwise?: Schema): Schema {
  return { if: test, then, ...(otherwise ? { else: otherwise } : {}) };
}

/** Returns an object whose `type` selects its definition. */
export function kinds(
  description: string | null,
  cases: { readonly [type: string]: string },
  more: Schema = {},
): Schema {
  const properties = { type: { enum: Object.keys(cases) } };
  const about = description === null ? {} : { description };
  return { ...about, type: 'object', ...more, required: ['type'], properties, ...byField('type', cases) };
}

/** Selects the definition by the value of a field, so that only its faults are reported. `otherwise` is for all other values. */
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

/** Returns a field that a client of another API may send and that has no effect. */
export function acceptedFrom(
  client: 'Anthropic' | 'Ollama' | 'OpenAI' | 'Tinker' | 'llama.cpp' | 'vLLM',
): Schema {
  return { description: `Accepted from ${client} clients; no effect.` };
}

/** Returns the schema of a field of another library that is refused by its name. */
export function refused(reason: string, library: 'ART' | 'Tinker' | 'vLLM' = 'vLLM'): Schema {
  return {
    description: `Of ${library}; refused: ${reason}.`,
    type: ['null'],
    expected: `no value: ${reason}`,
  };
}

/** Returns {@link acceptedFrom} for several names. */
export function accepted(
  client: Parameters<typeof acceptedFrom>[0],
  ...names: readonly string[]
): NonNullable<Schema['properties']> {
  return Object.fromEntries(names.map((name) => [name, acceptedFrom(client)]));
}

/** Returns the schema of one text, one list of token ids, or a list of either. */
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

/** A number of tokens to keep, or -1 for as many as fit. */
export const ALL_OR_SOME: More = {
  minimum: -1,
  ...allOrSome,
  ...when({ minimum: 0 }, { minimum: 1, ...allOrSome }),
};
