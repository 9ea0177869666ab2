/** Rules about tools and the choice among them. */
import { fault } from '../faults.ts';
import { type ChatRule, conflict } from './rule.ts';

/** Rules about tools. */
export const toolRules: readonly ChatRule[] = [
  {
    name: 'tool_choice needs tools',
    reads: ['tool_choice', 'tools'],
    check: ({ tool_choice, tools }) =>
      (tool_choice ?? 'none') !== 'none' && (tools ?? null) === null
        ? conflict('tool_choice', 'none without tools', tool_choice)
        : null,
  },
  {
    name: 'a named tool is among the tools',
    reads: ['tool_choice', 'tools'],
    check: ({ tool_choice, tools }) => {
      if (typeof tool_choice !== 'object' || !tool_choice || !tools) return null;
      const names = tools.map((tool) => tool.function.name);
      const { name } = tool_choice.function;
      if (names.includes(name)) return null;
      return fault(['tool_choice', 'function', 'name'], 'value', 'the name of one of the tools', name, {
        allowed: names,
      });
    },
  },
];
