/** Rules of `structured_outputs` and `response_format`. */
import { isObject, parseJson } from '../../common/index.ts';
import type { ErrorDetail } from '../../errors.ts';
import { fault } from '../faults.ts';
import type { StructuredOutputs } from '../generated/request-types.ts';
import { type ChatRule, contradiction } from './rule.ts';

/** Fields of `structured_outputs` that are constraints. */
const KINDS = ['json', 'regex', 'choice', 'grammar', 'json_object', 'structural_tag'] as const;
export type ConstraintKind = (typeof KINDS)[number];

/** Returns the constraints that are given, at most one in a valid request. `json_object: false` counts as absent. */
export function givenConstraints(
  structured: { readonly [Kind in ConstraintKind]?: unknown },
): ConstraintKind[] {
  return KINDS.filter(
    (kind) => structured[kind] != null && (kind !== 'json_object' || structured[kind] === true),
  );
}

const isSchema = (value: unknown): boolean => isObject(value) || typeof value === 'boolean';

/** Checks of constraints that are texts: field, expected text, check. */
const TEXT_CHECKS: readonly (readonly [keyof StructuredOutputs, string, (text: string) => boolean])[] = [
  ['json', 'JSON text of an object or boolean', (text) => isSchema(parseJson(text))],
  ['structural_tag', 'JSON text of an object', (text) => isObject(parseJson(text))],
  ['grammar', 'a grammar that is not blank', (text) => text.trim() !== ''],
  ['regex', 'a regular expression without NUL characters', (text) => !text.includes('\0')],
  ['whitespace_pattern', 'a regular expression without NUL characters', (text) => !text.includes('\0')],
];

export const structuredRules: readonly ChatRule[] = [
  {
    name: 'one constraint at a time',
    reads: ['structured_outputs'],
    check: ({ structured_outputs }) => {
      const given = structured_outputs ? givenConstraints(structured_outputs) : [];
      if (given.length < 2) return null;
      return {
        loc: ['structured_outputs'],
        msg: `structured_outputs: expected at most one of json, regex, choice, grammar, json_object and structural_tag, got ${given.join(' and ')}`,
        type: 'conflict',
        input: structured_outputs,
        ctx: { given },
      };
    },
  },
  contradiction(
    'response_format or structured_outputs',
    ['response_format', 'structured_outputs'],
    'no value with structured_outputs',
    ({ response_format, structured_outputs }) =>
      Boolean(response_format && response_format.type !== 'text' && structured_outputs),
  ),
  {
    name: 'texts of constraints are well formed',
    reads: ['structured_outputs'],
    check: ({ structured_outputs: given }) =>
      !given
        ? null
        : TEXT_CHECKS.flatMap(([field, expected, isRight]): ErrorDetail[] => {
            const text = given[field];
            if (typeof text !== 'string' || isRight(text)) return [];
            return [fault(['structured_outputs', field], 'value', expected, text)];
          }),
  },
  {
    name: 'a structural tag has one form',
    reads: ['response_format'],
    check: ({ response_format: tag }) => {
      if (tag?.type !== 'structural_tag') return null;
      const isOld = tag.structures != null && tag.triggers != null;
      const isHalfOld = tag.structures != null || tag.triggers != null;
      if (tag.format != null ? !isHalfOld : isOld) return null;
      return fault(['response_format'], 'conflict', 'either format, or structures with triggers', tag);
    },
  },
];
