/** Rules about tools and the choice among them, in both forms. */
import type { ErrorDetail } from '../../errors.ts';
import { fault } from '../faults.ts';
import type { ChatCompletionRequest, Tool } from '../generated/request-types.ts';
import { nameOf } from '../normalize-tools.ts';
import { type ChatRule, contradiction } from './rule.ts';

type Named = Parameters<typeof nameOf>[0];

export const toolRules: readonly ChatRule[] = [
  contradiction(
    'tool_choice needs tools',
    ['tool_choice', 'tools'],
    'none without tools',
    ({ tool_choice, tools }) => (tool_choice ?? 'none') !== 'none' && (tools ?? null) === null,
  ),
  {
    name: 'a named tool is among the tools',
    reads: ['tool_choice', 'tools'],
    check: ({ tool_choice, tools }) => (tools ? namedTools(tool_choice).flatMap(missingIn(tools)) : null),
  },
  {
    name: 'a custom tool has a name of its own',
    reads: ['tools'],
    check: ({ tools }) => {
      const faults: ErrorDetail[] = [];
      const known = new Map<string, Tool>();
      for (const [i, tool] of (tools ?? []).entries()) {
        const other = known.get(nameOf(tool));
        known.set(nameOf(tool), tool);
        if (!other || (other.type === 'function' && tool.type === 'function')) continue;
        const loc = ['tools', String(i), tool.type, 'name'];
        faults.push(fault(loc, 'conflict', 'a name that no other tool has', nameOf(tool)));
      }
      return faults;
    },
  },
  contradiction('functions or tools', ['functions', 'tools'], 'no value with tools', ({ functions, tools }) =>
    Boolean(functions && tools),
  ),
  contradiction(
    'function_call or tool_choice',
    ['function_call', 'tool_choice'],
    'no value with tool_choice',
    ({ function_call, tool_choice }) => Boolean(function_call && tool_choice),
  ),
  contradiction(
    'function_call needs functions',
    ['function_call', 'functions'],
    'none without functions',
    ({ function_call, functions }) => (function_call ?? 'none') !== 'none' && (functions ?? null) === null,
  ),
  {
    name: 'a named function is among the functions',
    reads: ['function_call', 'functions'],
    check: ({ function_call, functions }) => {
      if (typeof function_call !== 'object' || !function_call || !functions) return null;
      const allowed = functions.map(({ name }) => name);
      const { name } = function_call;
      if (allowed.includes(name)) return null;
      return fault(['function_call', 'name'], 'value', 'the name of one of the functions', name, { allowed });
    },
  },
];

/** Returns the tools that a choice names, with their paths. */
function namedTools(
  choice: ChatCompletionRequest['tool_choice'],
): { readonly named: Named; readonly loc: readonly string[] }[] {
  if (typeof choice !== 'object' || !choice) return [];
  if (choice.type !== 'allowed_tools') return [{ named: choice, loc: ['tool_choice'] }];
  return choice.allowed_tools.tools.map((named, i) => ({
    named,
    loc: ['tool_choice', 'allowed_tools', 'tools', String(i)],
  }));
}

function missingIn(tools: readonly Tool[]) {
  return ({ named, loc }: ReturnType<typeof namedTools>[number]): ErrorDetail[] => {
    const allowed = tools.filter(({ type }) => type === named.type).map(nameOf);
    const name = nameOf(named);
    if (allowed.includes(name)) return [];
    const expected = `the name of one of the ${named.type === 'custom' ? 'custom ' : ''}tools`;
    return [fault([...loc, named.type, 'name'], 'value', expected, name, { allowed })];
  };
}
