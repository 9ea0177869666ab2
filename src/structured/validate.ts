/** Any `StructuredOutputs` -> its faults; a sound one -> the specification in the engine's form. */
import type { NativeSpec } from '../native/index.ts';
import {
  type ConstraintKind,
  checkArguments,
  fault,
  givenConstraints,
  throwFaults,
} from '../protocol/index.ts';
import type { StructuredOutputs } from './types.ts';

const AT = ['structured_outputs'];

/** Checks a specification. Throws `INVALID_REQUEST` with all faults. */
export function validateStructuredOutputs(spec: StructuredOutputs): void {
  checkArguments('ConstraintSpec', spec, AT);
  const kinds = givenConstraints(spec);
  const expected = 'exactly one of json, regex, choice, grammar, json_object and structural_tag';
  if (kinds.length !== 1)
    throwFaults([fault(AT, 'conflict', `${expected}, not ${kinds.join(' and ') || 'none'}`, spec)]);
  const kind = kinds[0]!;
  const text: unknown = spec[kind];
  if (kind !== 'regex' && typeof text === 'string' && text.trim() === '')
    throwFaults([fault([...AT, kind], 'value', 'a text that is not blank', text)]);
}

/** What constrains in a sound specification. */
export function kindOf(spec: StructuredOutputs): ConstraintKind {
  return givenConstraints(spec)[0]!;
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
