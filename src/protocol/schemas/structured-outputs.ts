/** Constraints on the form of the answer: `structured_outputs` and `response_format`. */
import {
  branch,
  type Definitions,
  kinds,
  listOrNull,
  object,
  oneOf,
  orNull,
  type Schema,
  string,
} from './schema.ts';

/** The name that `structured_outputs._backend` may have. */
export const STRUCTURED_BACKEND = 'onpolicy';

function option(description: string): Schema {
  return { description, type: 'boolean', default: false };
}

/** Definitions of constraints. */
export const structuredDefinitions: Definitions = {
  StructuredOutputs: object(
    'A constraint that every answer fulfils. At most one of json, regex, choice, grammar, json_object and structural_tag.',
    [],
    {
      json: {
        description: 'JSON Schema, as text or as an object: the answer is JSON that fits it.',
        type: ['string', 'object', 'null'],
        bounds: 'text must be JSON of an object or boolean',
        tsType: 'string | JsonObject | null',
      },
      regex: orNull('string', 'The whole answer matches this regular expression.', {
        bounds: 'no NUL character',
      }),
      choice: listOrNull('The answer is exactly one of these texts.', { type: 'string' }, { minItems: 1 }),
      grammar: orNull(
        'string',
        'The answer follows this grammar: GBNF or EBNF where a line contains `::=`, else Lark.',
        { bounds: 'not blank' },
      ),
      json_object: orNull('boolean', 'The answer is any JSON object. False is the same as absent.'),
      structural_tag: orNull(
        'string',
        'JSON text that says which tagged parts of the answer are constrained, and how.',
        { bounds: 'JSON text of an object' },
      ),
      disable_fallback: option(
        'A schema keyword that cannot be enforced is an error, also where it only annotates.',
      ),
      disable_any_whitespace: option('JSON comes compact, with no white space between its tokens.'),
      disable_additional_properties: option('Objects have no properties beyond those that the schema names.'),
      whitespace_pattern: orNull('string', 'Regular expression of the white space between JSON tokens.'),
      property_order: oneOf(
        'The order of properties in JSON: as `properties` of the schema lists them, or any. A schema with `x-property-order` decides for itself.',
        ['declared', 'any', null],
      ),
      schemas: {
        description:
          'JSON Schemas by absolute URI, for each `$ref` that leads out of the schema. None is ever fetched.',
        type: ['object', 'null'],
        additionalProperties: { type: ['object', 'boolean'] },
        tsType: 'Record<string, JsonObject | boolean> | null',
      },
      _backend: oneOf(`The engine that enforces the constraint; only \`${STRUCTURED_BACKEND}\`, our own.`, [
        STRUCTURED_BACKEND,
        null,
      ]),
      _backend_was_auto: option('No effect.'),
    },
    { type: ['object', 'null'] },
  ),
  ResponseFormat: kinds(
    'The form of the answer, in the words of the OpenAI API.',
    {
      text: 'TextResponseFormat',
      json_object: 'JsonObjectResponseFormat',
      json_schema: 'JsonSchemaResponseFormat',
      structural_tag: 'StructuralTagResponseFormat',
    },
    { type: ['object', 'null'] },
  ),
  TextResponseFormat: branch('No constraint.', ['type'], {
    type: { description: 'Kind of the format.', const: 'text' },
    json_schema: { description: 'No effect beside the type `text`.' },
  }),
  JsonObjectResponseFormat: branch('Any JSON object, or one that fits a schema.', ['type'], {
    type: { description: 'Kind of the format.', const: 'json_object' },
    schema: {
      description: 'A JSON Schema, as with `json_schema`. Absent or null: any object.',
      type: ['object', 'null'],
      tsType: 'JsonObject | null',
    },
  }),
  JsonSchemaResponseFormat: branch('JSON that fits a schema.', ['type', 'json_schema'], {
    type: { description: 'Kind of the format.', const: 'json_schema' },
    json_schema: object('The schema and its name.', ['name'], {
      name: string('Name of the format; no effect.'),
      description: orNull('string', 'What it is for; no effect.'),
      schema: {
        description: 'The JSON Schema. Absent or null: no constraint.',
        type: ['object', 'null'],
        tsType: 'JsonObject | null',
      },
      strict: orNull('boolean', 'No effect: schemas are always enforced.'),
    }),
  }),
  StructuralTagResponseFormat: branch(
    'Free text with constrained parts. Either `format`, or `structures` with `triggers`.',
    ['type'],
    {
      type: { description: 'Kind of the format.', const: 'structural_tag' },
      format: { description: 'Tree of formats.', type: ['object', 'null'], tsType: 'JsonObject | null' },
      structures: listOrNull('The constrained parts.', {
        type: 'object',
        required: ['begin', 'end'],
        properties: {
          begin: string('Text that opens the part.'),
          schema: {
            description: 'JSON Schema of what is between.',
            type: ['object', 'null'],
            tsType: 'JsonObject | null',
          },
          end: string('Text that closes the part.'),
        },
        additionalProperties: false,
      }),
      triggers: listOrNull('Texts after which a part must follow.', { type: 'string', minLength: 1 }),
    },
  ),
};

const outputs = structuredDefinitions['StructuredOutputs']!.properties!;

/** Definitions of arguments of `onpolicy/structured`. */
export const specificationDefinitions: Definitions = {
  ConstraintSpec: object(
    'The `structured_outputs` of a request: exactly one of the first six fields, and options for JSON.',
    [],
    {
      ...outputs,
      json: {
        ...outputs['json'],
        type: ['string', 'object', 'boolean', 'null'],
        tsType: 'string | boolean | Readonly<Record<string, unknown>> | null',
      },
      structural_tag: {
        description: 'A structural tag, as an object or as text.',
        type: ['string', 'object', 'null'],
        tsType: 'string | Readonly<Record<string, unknown>> | null',
      },
      schemas: {
        ...outputs['schemas'],
        tsType: 'Readonly<Record<string, Readonly<Record<string, unknown>> | boolean>> | null',
      },
      ...Object.fromEntries(
        ['disable_fallback', 'disable_any_whitespace', 'disable_additional_properties'].map((name) => [
          name,
          orNull('boolean', outputs[name]!.description!, { default: false }),
        ]),
      ),
    },
    { title: 'structured_outputs' },
  ),
};
