/** Rules about how the prompt is made. */
import { parseJson } from '../../common/index.ts';
import type { ErrorDetail } from '../../errors.ts';
import { fault } from '../faults.ts';
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
        ? conflict('thinking_token_budget', `nothing, or the ${budget} of reasoning.max_tokens`, other)
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
    name: 'earlier calls have one form, and arguments in JSON',
    reads: ['messages'],
    check: ({ messages }, { allowBrokenArguments }) => {
      const faults: ErrorDetail[] = [];
      for (const [i, message] of messages.entries()) {
        const calls = callsOf(message);
        const old = oldCallOf(message);
        const read = (text: string | null | undefined, ...path: string[]): void => {
          if (text && !allowBrokenArguments && parseJson(text) === undefined)
            faults.push(fault(['messages', String(i), ...path, 'arguments'], 'value', 'JSON text', text));
        };
        calls?.forEach((call, k) => {
          if (call.type !== 'custom') read(call.function.arguments, 'tool_calls', String(k), 'function');
        });
        read(old?.arguments, 'function_call');
        if (old && calls?.length)
          faults.push(
            fault(['messages', String(i), 'function_call'], 'conflict', 'nothing with tool_calls', old),
          );
      }
      return faults;
    },
  },
];

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
