/** Rules about constraints. */
import type { RuleRow } from './rule-rows.ts';

const SCHEMA = { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' } } };

/** By the rule's name. */
export const STRUCTURED_RULE_ROWS: Record<string, RuleRow> = {
  'one constraint at a time': {
    good: [
      { structured_outputs: { regex: 'a', json_object: false } },
      { structured_outputs: { regex: 'a', choice: null } },
      { structured_outputs: {} },
    ],
    bad: [
      [
        { structured_outputs: { regex: 'a', choice: ['b'] } },
        'structured_outputs: expected at most one of json, regex, choice, grammar, json_object and structural_tag, got regex and choice',
      ],
      [
        { structured_outputs: { json: {}, json_object: true, structural_tag: '{}' } },
        'structured_outputs: expected at most one of json, regex, choice, grammar, json_object and structural_tag, got json and json_object and structural_tag',
      ],
    ],
  },
  'response_format or structured_outputs': {
    good: [
      { response_format: SCHEMA, structured_outputs: null },
      { response_format: null, structured_outputs: { regex: 'a' } },
      { response_format: { type: 'text' }, structured_outputs: { regex: 'a' } },
      { response_format: { type: 'text', json_schema: { name: 'x', schema: { type: 'object' } } } },
    ],
    bad: [
      [
        { response_format: SCHEMA, structured_outputs: { regex: 'a' } },
        'response_format: expected no value with structured_outputs, got an object',
      ],
    ],
  },
  'texts of constraints are well formed': {
    good: [{ structured_outputs: { json: 'true' } }],
    bad: [
      [
        { structured_outputs: { json: 'nul' } },
        'structured_outputs.json: expected JSON text of an object or boolean, got "nul"',
      ],
    ],
  },
  'a structural tag has one form': {
    good: [{ response_format: { type: 'structural_tag', format: {} } }],
    bad: [
      [
        { response_format: { type: 'structural_tag', format: {}, triggers: ['a'] } },
        'response_format: expected either format, or structures with triggers, got an object',
      ],
      [
        { response_format: { type: 'structural_tag', structures: [] } },
        'response_format: expected either format, or structures with triggers, got an object',
      ],
    ],
  },
};
