/** Constraints on the form of the answer: `structured_outputs` and `response_format`. */
import { byField, type Definitions, type Schema } from './schema.ts';

/** The name that `structured_outputs._backend` may have. */
export const STRUCTURED_BACKEND = 'onpolicy';

function option(description: string): Schema {
  return { description, type: 'boolean', default: false };
}

/** Definitions of constraints. */
export const structuredDefinitions: Definitions = {
  StructuredOutputs: {
    description:
      'A constraint that every answer fulfils. At most one of json, regex, choice, grammar, json_object and structural_tag.',
    type: ['object', 'null'],
    properties: {
      json: {
        description: 'JSON Schema, as text or as an object: the answer is JSON that fits it.',
        type: ['string', 'object', 'null'],
        bounds: 'text must be JSON of an object or boolean',
        tsType: 'string | JsonObject | null',
      },
      regex: {
        description: 'The whole answer matches this regular expression.',
        type: ['string', 'null'],
        bounds: 'no NUL character',
      },
      choice: {
        description: 'The answer is exactly one of these texts.',
        type: ['array', 'null'],
        items: { type: 'string' },
        minItems: 1,
      },
      grammar: {
        description: 'The answer follows this grammar: GBNF or EBNF where a line contains `::=`, else Lark.',
        type: ['string', 'null'],
        bounds: 'not blank',
      },
      json_object: {
        description: 'The answer is any JSON object. False is the same as absent.',
        type: ['boolean', 'null'],
      },
      structural_tag: {
        description: 'JSON text that says which tagged parts of the answer are constrained, and how.',
        type: ['string', 'null'],
        bounds: 'JSON text of an object',
      },
      disable_fallback: option(
        'A schema keyword that cannot be enforced is an error, also where it only annotates.',
      ),
      disable_any_whitespace: option('JSON comes compact, with no white space between its tokens.'),
      disable_additional_properties: option('Objects have no properties beyond those that the schema names.'),
      whitespace_pattern: {
        description: 'Regular expression of the white space between JSON tokens.',
        type: ['string', 'null'],
      },
      property_order: {
        description:
          'The order of properties in JSON: as `properties` of the schema lists them, or any. A schema with `x-property-order` decides for itself.',
        enum: ['declared', 'any', null],
      },
      schemas: {
        description:
          'JSON Schemas by absolute URI, for each `$ref` that leads out of the schema. None is ever fetched.',
        type: ['object', 'null'],
        additionalProperties: { type: ['object', 'boolean'] },
        tsType: 'Record<string, JsonObject | boolean> | null',
      },
      _backend: {
        description: `The engine that enforces the constraint; only \`${STRUCTURED_BACKEND}\`, our own.`,
        enum: [STRUCTURED_BACKEND, null],
      },
      _backend_was_auto: option('No effect.'),
    },
    additionalProperties: false,
  },
  ResponseFormat: {
    description: 'The form of the answer, in the words of the OpenAI API.',
    type: ['object', 'null'],
    required: ['type'],
    properties: { type: { enum: ['text', 'json_object', 'json_schema', 'structural_tag'] } },
    ...byField('type', {
      text: 'TextResponseFormat',
      json_object: 'JsonObjectResponseFormat',
      json_schema: 'JsonSchemaResponseFormat',
      structural_tag: 'StructuralTagResponseFormat',
    }),
  },
  TextResponseFormat: {
    description: 'No constraint.',
    required: ['type'],
    properties: {
      type: { description: 'Kind of the format.', const: 'text' },
      json_schema: { description: 'No effect beside the type `text`.' },
    },
    additionalProperties: false,
  },
  JsonObjectResponseFormat: {
    description: 'Any JSON object, or one that fits a schema.',
    required: ['type'],
    properties: {
      type: { description: 'Kind of the format.', const: 'json_object' },
      schema: {
        description: 'A JSON Schema, as with `json_schema`. Absent or null: any object.',
        type: ['object', 'null'],
        tsType: 'JsonObject | null',
      },
    },
    additionalProperties: false,
  },
  JsonSchemaResponseFormat: {
    description: 'JSON that fits a schema.',
    required: ['type', 'json_schema'],
    properties: {
      type: { description: 'Kind of the format.', const: 'json_schema' },
      json_schema: {
        description: 'The schema and its name.',
        type: 'object',
        required: ['name'],
        properties: {
          name: { description: 'Name of the format; no effect.', type: 'string' },
          description: { description: 'What it is for; no effect.', type: ['string', 'null'] },
          schema: {
            description: 'The JSON Schema. Absent or null: no constraint.',
            type: ['object', 'null'],
            tsType: 'JsonObject | null',
          },
          strict: { description: 'No effect: schemas are always enforced.', type: ['boolean', 'null'] },
        },
        additionalProperties: false,
      },
    },
    additionalProperties: false,
  },
  StructuralTagResponseFormat: {
    description: 'Free text with constrained parts. Either `format`, or `structures` with `triggers`.',
    required: ['type'],
    properties: {
      type: { description: 'Kind of the format.', const: 'structural_tag' },
      format: { description: 'Tree of formats.', type: ['object', 'null'], tsType: 'JsonObject | null' },
      structures: {
        description: 'The constrained parts.',
        type: ['array', 'null'],
        items: {
          type: 'object',
          required: ['begin', 'end'],
          properties: {
            begin: { description: 'Text that opens the part.', type: 'string' },
            schema: {
              description: 'JSON Schema of what is between.',
              type: ['object', 'null'],
              tsType: 'JsonObject | null',
            },
            end: { description: 'Text that closes the part.', type: 'string' },
          },
          additionalProperties: false,
        },
      },
      triggers: {
        description: 'Texts after which a part must follow.',
        type: ['array', 'null'],
        items: { type: 'string', minLength: 1 },
      },
    },
    additionalProperties: false,
  },
};
