/** Any `StructuredOutputs` -> its faults; a valid one -> the specification in the engine's form. */
import type { NativeSpec } from '../engine/native/index.ts';
import {
  type ConstraintKind,
  checkArguments,
  fault,
  givenConstraints,
  throwFaults,
} from '../protocol/index.ts';
import type { StructuredOutputs } from './types.ts';

const AT = ['structured_outputs'];
/** The engine's kinds of specifications. */
const NATIVE_KIND = { json: 0, json_object: 0, regex: 1, choice: 2, grammar: 3, structural_tag: 4 } as const;

/** Checks a specification. Throws `INVALID_REQUEST` with all faults. */
export function checkStructuredOutputs(spec: StructuredOutputs): void {
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

/** Returns the kind of constraint in a valid specification. */
export function kindOf(spec: StructuredOutputs): ConstraintKind {
  return givenConstraints(spec)[0]!;
}

/** Returns a valid specification in the engine's form. */
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
  const kind = kindOf(spec);
  if (kind === 'choice') return { kind: NATIVE_KIND.choice, text: '', choices: spec.choice! };
  const value = kind === 'json_object' ? { type: 'object' } : spec[kind];
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return { kind: NATIVE_KIND[kind], text, choices: [] };
}
