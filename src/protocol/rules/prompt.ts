/** Rules about how the prompt is made. */
import { distance } from 'fastest-levenshtein';
import type { ErrorDetail } from '../../errors.ts';
import { closestName, fault } from '../faults.ts';
import { callsOf, oldCallOf } from '../normalize-message.ts';
import { type ChatRule, type ChatRuleOptions, conflict, contradiction } from './rule.ts';

export const promptRules: readonly ChatRule[] = [
  contradiction(
    'a continued message needs no new one',
    ['add_generation_prompt', 'continue_final_message'],
    'false with continue_final_message: true',
    ({ continue_final_message, add_generation_prompt }) =>
      Boolean(continue_final_message && add_generation_prompt),
  ),
  {
    name: 'one budget of reasoning',
    reads: ['reasoning', 'thinking_token_budget'],
    check: ({ reasoning, thinking_token_budget: other }) => {
      const budget = reasoning?.max_tokens ?? null;
      return budget !== null && (other ?? budget) !== budget
        ? conflict('thinking_token_budget', `no value or ${budget}, as in reasoning.max_tokens`, other)
        : null;
    },
  },
  {
    name: 'a request may bring a template',
    reads: ['chat_template'],
    isLimit: true,
    check: ({ chat_template }, options) => templateFault(['chat_template'], chat_template, options),
  },
  {
    name: 'a request may bring a template among its variables',
    reads: ['chat_template_kwargs'],
    isLimit: true,
    check: ({ chat_template_kwargs }, options) =>
      templateFault(
        ['chat_template_kwargs', 'chat_template'],
        chat_template_kwargs?.['chat_template'],
        options,
      ),
  },
  {
    name: 'template variables leave the renderer alone',
    reads: ['chat_template_kwargs'],
    check: ({ chat_template_kwargs }) => {
      const { tokenize, chat_template } = chat_template_kwargs ?? {};
      const faults: ErrorDetail[] = [];
      if (tokenize !== undefined)
        faults.push(fault(['chat_template_kwargs', 'tokenize'], 'value', 'no such key', tokenize));
      if (typeof (chat_template ?? '') !== 'string')
        faults.push(fault(['chat_template_kwargs', 'chat_template'], 'type', 'a string', chat_template));
      return faults;
    },
  },
  {
    name: 'roles are not misspelt',
    reads: ['messages'],
    check: ({ messages }) => {
      const faults: ErrorDetail[] = [];
      for (const [i, { role }] of messages.entries()) {
        const meant = KNOWN_ROLES.has(role) ? null : meantRole(role);
        if (meant === null) continue;
        const loc = ['messages', String(i), 'role'];
        const found = fault(loc, 'value', `${JSON.stringify(meant)}, or a role that is not almost it`, role);
        faults.push({ ...found, ctx: { closest: meant } });
      }
      return faults;
    },
  },
  {
    name: 'earlier calls have one form',
    reads: ['messages'],
    check: ({ messages }) => {
      const faults: ErrorDetail[] = [];
      for (const [i, message] of messages.entries()) {
        const calls = callsOf(message);
        const old = oldCallOf(message);
        if (old && calls?.length)
          faults.push(
            fault(['messages', String(i), 'function_call'], 'conflict', 'no value with tool_calls', old),
          );
      }
      return faults;
    },
  },
];

/** Roles that OpenAI's API has. Chat templates may know more. */
const KNOWN_ROLES: ReadonlySet<string> = new Set([
  'system',
  'developer',
  'user',
  'assistant',
  'tool',
  'function',
]);
/** Letters of a role from which on two of them may be wrong. */
const LONG_ROLE = 8;

/** Returns the role of which another one is a misspelling, or null: templates may know any role. */
function meantRole(role: string): string | null {
  const near = closestName(role, [...KNOWN_ROLES]);
  if (near === null) return null;
  return distance(role.toLowerCase(), near) <= (near.length >= LONG_ROLE ? 2 : 1) ? near : null;
}

function templateFault(
  loc: readonly string[],
  template: unknown,
  { allowRequestTemplate }: ChatRuleOptions,
): ErrorDetail | null {
  if (!template || allowRequestTemplate) return null;
  return fault(
    loc,
    'unsupported',
    'no template: this runtime does not take templates from requests',
    template,
  );
}
