/** Any `StructuredOutputs` -> its faults; a sound one -> the specification in the engine's form. */
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

type Kind = (typeof KINDS)[number];
type Values = Readonly<Record<string, unknown>>;

/** Checks a specification. Throws `INVALID_REQUEST` with all faults. */
export function validateStructuredOutputs(spec: StructuredOutputs): void {
  const faults: ErrorDetail[] = [];
  const fault = (key: string, msg: string, type: string, input?: unknown) =>
    faults.push({ loc: key === '' ? ['structured_outputs'] : ['structured_outputs', key], msg, type, input });
  if (typeof spec !== 'object' || spec === null || Array.isArray(spec)) {
    fault('', `expected an object, got ${spec === null ? 'null' : typeof spec}`, 'type', spec);
    throw invalidInput(faults);
  }
  const values = spec as Values;
  for (const key of Object.keys(values))
    if (!KNOWN.has(key)) fault(key, `unknown field '${key}'`, 'unknown_field', values[key]);
  const kinds = givenKinds(values);
  if (kinds.length !== 1)
    fault(
      '',
      `expected exactly one of ${KINDS.join(', ')}; got ${kinds.join(' and ') || 'none'}`,
      'value_error',
    );
  for (const key of FLAGS)
    if (isGiven(values, key) && typeof values[key] !== 'boolean')
      fault(key, 'expected a boolean', 'type', values[key]);
  if (isGiven(values, 'whitespace_pattern') && typeof values['whitespace_pattern'] !== 'string')
    fault('whitespace_pattern', 'expected a string', 'type', values['whitespace_pattern']);
  if (isGiven(values, 'property_order') && !ORDERS.includes(values['property_order']))
    fault('property_order', "expected 'declared' or 'any'", 'value_error', values['property_order']);
  if (isGiven(values, 'schemas')) checkSchemas(values['schemas'], fault);
  if (isGiven(values, '_backend') && values['_backend'] !== 'onpolicy')
    fault('_backend', "only 'onpolicy' can be chosen", 'value_error', values['_backend']);
  for (const kind of kinds) {
    const found = faultOf(kind, values[kind]);
    if (found !== null)
      fault(kind, found, found.startsWith('expected') ? 'type' : 'value_error', values[kind]);
  }
  if (faults.length > 0) throw invalidInput(faults);
}

/** What constrains in a sound specification. */
export function kindOf(spec: StructuredOutputs): Kind {
  return givenKinds(spec)[0]!;
}

/** A sound specification in the engine's form. */
export function toNativeSpec(spec: StructuredOutputs): NativeSpec {
  const schemas = Object.fromEntries(
    Object.entries(spec.schemas ?? {}).map(([uri, schema]) => [
      uri.replace(/#$/, ''),
      JSON.stringify(schema),
    ]),
  );
  return {
    ...mainOf(spec),
    anyWhitespace: spec.disable_any_whitespace !== true,
    disableAdditionalProperties: spec.disable_additional_properties === true,
    refuseUnknown: spec.disable_fallback === true,
    anyOrder: spec.property_order === 'any',
    schemaUris: Object.keys(schemas),
    schemas: Object.values(schemas),
    ...(spec.whitespace_pattern == null ? {} : { whitespacePattern: spec.whitespace_pattern }),
  };
}

function checkSchemas(
  value: unknown,
  fault: (key: string, msg: string, type: string, input?: unknown) => void,
): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return fault('schemas', 'expected an object of JSON Schemas by URI', 'type', value);
  for (const [uri, schema] of Object.entries(value))
    if (schema === null || !isDocument(schema))
      fault('schemas', `expected a JSON Schema at '${uri}'`, 'type', schema);
}

function isGiven(values: Values, key: string): boolean {
  return values[key] !== undefined && values[key] !== null;
}

function givenKinds(values: Values): Kind[] {
  return KINDS.filter((key) => isGiven(values, key) && !(key === 'json_object' && values[key] === false));
}

function faultOf(kind: Kind, value: unknown): string | null {
  switch (kind) {
    case 'regex':
      return typeof value === 'string' ? null : 'expected a string';
    case 'json_object':
      return value === true ? null : 'expected a boolean';
    case 'choice':
      return Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string')
        ? null
        : 'expected a non-empty list of strings';
    default:
      if (kind !== 'grammar' && isDocument(value)) return null;
      if (typeof value !== 'string') return 'expected a string';
      return value.trim() === '' ? 'must not be blank' : null;
  }
}

function isDocument(value: unknown): boolean {
  return (typeof value === 'object' && !Array.isArray(value)) || typeof value === 'boolean';
}

function mainOf(spec: StructuredOutputs): Pick<NativeSpec, 'kind' | 'text' | 'choices'> {
  const text = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
  const kind = kindOf(spec);
  switch (kind) {
    case 'json':
      return { kind: 0, text: text(spec.json), choices: [] };
    case 'json_object':
      return { kind: 0, text: '{"type":"object"}', choices: [] };
    case 'regex':
      return { kind: 1, text: text(spec.regex), choices: [] };
    case 'choice':
      return { kind: 2, text: '', choices: spec.choice! };
    case 'grammar':
      return { kind: 3, text: text(spec.grammar), choices: [] };
    case 'structural_tag':
      return { kind: 4, text: text(spec.structural_tag), choices: [] };
  }
}
