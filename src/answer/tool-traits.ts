/** A chat template -> how it takes the tools of a request. */
import { countOf, MARKS, type Prober } from './template-probe.ts';

export type ToolTraits = {
  /** True if the template shows tools. */
  readonly areShown: boolean;
  /** The variable from which it shows them. */
  readonly variable: string;
  /** True if a tool without a description must get an empty one. */
  readonly needsDescription: boolean;
  /** True if a tool without parameters must get an empty schema. */
  readonly needsParameters: boolean;
};

/** Other names of the variable `tools` in published templates. */
const OTHER_VARIABLES = ['xml_tools'];

const DESCRIPTION = 'Does it.';
export const NO_PARAMETERS = { type: 'object', properties: {} };

/** A tool in the form that every template takes. */
export const PROBE_TOOL = {
  type: 'function',
  function: {
    name: MARKS.tool,
    description: DESCRIPTION,
    parameters: {
      type: 'object',
      properties: { probe: { type: 'string', description: DESCRIPTION } },
      required: ['probe'],
    },
  },
};

export function findToolTraits(prober: Prober): ToolTraits {
  const { template } = prober;
  const user = prober.message('user', MARKS.user);
  const { name, description, parameters } = PROBE_TOOL.function;
  const render = (variable: string, more: Readonly<Record<string, unknown>>): string | null => {
    const tools = [{ type: 'function', function: { name, ...more } }];
    return prober.render([user], variable === 'tools' ? { tools } : { kwargs: { [variable]: tools } });
  };
  const whole = { description, parameters };
  const shows = (variable: string) => render(variable, whole)?.includes(name) ?? false;
  const others = OTHER_VARIABLES.filter((other) => template.variables.has(other));
  const shown = ['tools', ...others].find(shows);
  const variable = shown ?? 'tools';
  const best = render(variable, whole);
  /** Returns true if the template fails without a field, or writes `None` for it. */
  const needs = (more: Readonly<Record<string, unknown>>): boolean => {
    if (best === null) return true;
    const text = render(variable, more);
    return text === null || countOf(text, 'None') > countOf(best, 'None');
  };
  return {
    areShown: shown !== undefined,
    variable,
    needsDescription: needs({ parameters }),
    needsParameters: needs({ description }),
  };
}
