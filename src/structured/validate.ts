/** `StructuredOutputs` -> its one specification in the engine's form. All validation is here. */
import { type ErrorDetail, invalidInput } from '../errors.ts';
import type { NativeSpec } from '../native/index.ts';
import type { StructuredOutputs } from './types.ts';

const KINDS = ['json', 'regex', 'choice', 'grammar', 'json_object', 'structural_tag'] as const;
const FLAGS = ['disable_any_whitespace', 'disable_additional_properties', 'disable_fallback'] as const;
const KNOWN = new Set<string>([
  ...KINDS,
  ...FLAGS,
  'whitespace_pattern',
  'property_order',
  'schemas',
  '_backend',
  '_backend_was_auto',
]);
const ORDERS: readonly unknown[] = ['declared', 'any'];

/** Checks and converts a specification. Throws `INVALID_REQUEST` with all faults. */
export function validateStructuredOutputs(spec: StructuredOutputs): NativeSpec {
  const faults: ErrorDetail[] = [];
  const fault = (key: string, msg: string, type: string, input?: unknown) =>
    faults.push({ loc: key === '' ? ['structured_outputs'] : ['structured_outputs', key], msg, type, input });
  if (typeof spec !== 'object' || spec === null || Array.isArray(spec)) {
    fault('', `expected an object, got ${spec === null ? 'null' : typeof spec}`, 'type', spec);
    throw invalidInput(faults);
  }
  const values = spec as Readonly<Record<string, unknown>>;
  const given = (key: string) => values[key] !== undefined && values[key] !== null;
  for (const key of Object.keys(values))
    if (!KNOWN.has(key)) fault(key, `unknown field '${key}'`, 'unknown_field', values[key]);
  const kinds = KINDS.filter((key) => given(key) && !(key === 'json_object' && values[key] === false));
  if (kinds.length !== 1)
    fault(
      '',
      `expected exactly one of ${KINDS.join(', ')}; got ${kinds.join(' and ') || 'none'}`,
      'value_error',
    );
  for (const key of FLAGS)
    if (given(key) && typeof values[key] !== 'boolean') fault(key, 'expected a boolean', 'type', values[key]);
  if (given('whitespace_pattern') && typeof values['whitespace_pattern'] !== 'string')
    fault('whitespace_pattern', 'expected a string', 'type', values['whitespace_pattern']);
  if (given('property_order') && !ORDERS.includes(values['property_order']))
    fault('property_order', "expected 'declared' or 'any'", 'value_error', values['property_order']);
  const schemas = given('schemas') ? readSchemas(values['schemas'], fault) : {};
  if (given('_backend') && values['_backend'] !== 'onpolicy')
    fault('_backend', "only 'onpolicy' can be chosen", 'value_error', values['_backend']);
  const kind = kinds[0];
  const main = kind === undefined ? undefined : readKind(kind, values[kind], fault);
  if (faults.length > 0 || main === undefined) throw invalidInput(faults);
  return {
    ...main,
    anyWhitespace: values['disable_any_whitespace'] !== true,
    disableAdditionalProperties: values['disable_additional_properties'] === true,
    refuseUnknown: values['disable_fallback'] === true,
    anyOrder: values['property_order'] === 'any',
    schemaUris: Object.keys(schemas),
    schemas: Object.values(schemas),
    ...(given('whitespace_pattern') ? { whitespacePattern: values['whitespace_pattern'] as string } : {}),
  };
}

/** The schemas by URI, as text. */
function readSchemas(
  value: unknown,
  fault: (key: string, msg: string, type: string, input?: unknown) => void,
): Readonly<Record<string, string>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    fault('schemas', 'expected an object of JSON Schemas by URI', 'type', value);
    return {};
  }
  for (const [uri, schema] of Object.entries(value))
    if (
      typeof schema !== 'boolean' &&
      (typeof schema !== 'object' || schema === null || Array.isArray(schema))
    )
      fault('schemas', `expected a JSON Schema at '${uri}'`, 'type', schema);
  return Object.fromEntries(
    Object.entries(value).map(([uri, schema]) => [uri.replace(/#$/, ''), JSON.stringify(schema)]),
  );
}

type Main = Pick<NativeSpec, 'kind' | 'text' | 'choices'>;

function readKind(
  kind: (typeof KINDS)[number],
  value: unknown,
  fault: (key: string, msg: string, type: string, input?: unknown) => void,
): Main | undefined {
  const text = (index: NativeSpec['kind']): Main | undefined => {
    if (typeof value === 'string' && value.trim() !== '') return { kind: index, text: value, choices: [] };
    if (typeof value === 'string') fault(kind, 'must not be blank', 'value_error', value);
    else fault(kind, 'expected a string', 'type', value);
    return undefined;
  };
  const object = (index: NativeSpec['kind']): Main | undefined => {
    if ((typeof value === 'object' && value !== null && !Array.isArray(value)) || typeof value === 'boolean')
      return { kind: index, text: JSON.stringify(value), choices: [] };
    return text(index);
  };
  switch (kind) {
    case 'json':
      return object(0);
    case 'structural_tag':
      return object(4);
    case 'grammar':
      return text(3);
    case 'regex':
      if (typeof value === 'string') return { kind: 1, text: value, choices: [] };
      fault(kind, 'expected a string', 'type', value);
      return undefined;
    case 'json_object':
      if (value === true) return { kind: 0, text: '{"type":"object"}', choices: [] };
      fault(kind, 'expected a boolean', 'type', value);
      return undefined;
    case 'choice':
      if (Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string'))
        return { kind: 2, text: '', choices: value };
      fault(kind, 'expected a non-empty list of strings', 'type', value);
      return undefined;
  }
}
