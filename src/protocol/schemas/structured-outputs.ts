/** Constraints on the form of the answer: `structured_outputs` and `response_format`. */
import * as s from './schema.ts';

/** The name that `structured_outputs._backend` may have. */
export const STRUCTURED_BACKEND = 'onpolicy';

export const structuredDefinitions: s.Definitions = {
  StructuredOutputs: s.objectOrNull(
    'A constraint that every answer fulfils. At most one of json, regex, choice, grammar, json_object and structural_tag.',
    {
      json: {
        description: 'JSON Schema, as text or as an object: the answer is JSON that fits it.',
        type: ['string', 'object', 'null'],
        bounds: 'text must be JSON of an object or boolean',
        tsType: 'string | JsonObject | StandardSchema | null',
      },
      regex: s.stringOrNull('The whole answer matches this regular expression.', {
        bounds: 'no NUL character',
      }),
      choice: s.listOrNull('The answer is exactly one of these texts.', { type: 'string' }, { minItems: 1 }),
      grammar: s.stringOrNull(
        'The answer follows this grammar: GBNF or EBNF where a line contains `::=`, else Lark.',
        { bounds: 'not blank' },
      ),
      json_object: s.booleanOrNull('The answer is any JSON object. False is the same as absent.'),
      structural_tag: s.stringOrNull(
        'JSON text that says which tagged parts of the answer are constrained, and how.',
        { bounds: 'JSON text of an object' },
      ),
      disable_fallback: s.flag(
        false,
        'A schema keyword that cannot be enforced is an error, even if it is only an annotation.',
      ),
      disable_any_whitespace: s.flag(false, 'JSON is compact, with no white space between its tokens.'),
      disable_additional_properties: s.flag(
        false,
        'Objects have no properties beyond those that the schema names.',
      ),
      whitespace_pattern: s.stringOrNull('Regular expression of the white space between JSON tokens.'),
      property_order: s.oneOf(
        'The order of properties in JSON: as `properties` of the schema lists them, or any. `x-property-order` of a schema takes precedence.',
        ['declared', 'any', null],
      ),
      schemas: {
        description: 'JSON Schemas by absolute URI, for each `$ref` to another document. Nothing is fetched.',
        type: ['object', 'null'],
        additionalProperties: { type: ['object', 'boolean'] },
        tsType: 'Record<string, JsonObject | boolean> | null',
      },
      _backend: s.oneOf(`The engine that enforces the constraint; only \`${STRUCTURED_BACKEND}\`, our own.`, [
        STRUCTURED_BACKEND,
        null,
      ]),
      _backend_was_auto: s.flag(false, 'No effect.'),
    },
  ),
  ResponseFormat: s.kinds(
    'The form of the answer, in the words of the OpenAI API.',
    {
      text: 'TextResponseFormat',
      json_object: 'JsonObjectResponseFormat',
      json_schema: 'JsonSchemaResponseFormat',
      structural_tag: 'StructuralTagResponseFormat',
    },
    { type: ['object', 'null'] },
  ),
  TextResponseFormat: s.variant('text', 'format', 'No constraint.', [], {
    json_schema: { description: 'No effect beside the type `text`.' },
  }),
  JsonObjectResponseFormat: s.variant(
    'json_object',
    'format',
    'Any JSON object, or one that fits a schema.',
    [],
    {
      schema: s.jsonSchema('A JSON Schema, as with `json_schema`. Absent or null: any object.'),
    },
  ),
  JsonSchemaResponseFormat: s.variant('json_schema', 'format', 'JSON that fits a schema.', ['json_schema'], {
    json_schema: s.object('The schema and its name.', ['name'], {
      name: s.string('Name of the format; no effect.'),
      description: s.stringOrNull('What it is for; no effect.'),
      schema: s.jsonSchema('The JSON Schema. Absent or null: no constraint.'),
      strict: s.booleanOrNull('No effect: schemas are always enforced.'),
    }),
  }),
  StructuralTagResponseFormat: s.variant(
    'structural_tag',
    'format',
    'Free text with constrained parts. Either `format`, or `structures` with `triggers`.',
    [],
    {
      format: s.jsonObject('Tree of formats.'),
      structures: s.listOrNull('The constrained parts.', {
        type: 'object',
        required: ['begin', 'end'],
        properties: {
          begin: s.string('Text that opens the part.'),
          schema: s.jsonObject('JSON Schema of what is between.'),
          end: s.string('Text that closes the part.'),
        },
        additionalProperties: false,
      }),
      triggers: s.listOrNull('Texts after which a part must follow.', { type: 'string', minLength: 1 }),
    },
  ),
};

const outputs = structuredDefinitions['StructuredOutputs']!.properties!;

export const specificationDefinitions: s.Definitions = {
  ConstraintSpec: s.object(
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
          s.flagOrNull(false, outputs[name]!.description!),
        ]),
      ),
    },
    { title: 'structured_outputs' },
  ),
};
