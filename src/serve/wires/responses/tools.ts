/** Tools of a responses request <-> those of a chat, which has one list of names. */
import {
  closestName,
  fault,
  PathTranslation,
  type ResponseCustomTool,
  type ResponseFunctionTool,
  type ResponseRequest,
  type Tool,
  throwFaults,
  type ValidationOptions,
} from '../../../protocol/index.ts';

type ResponseTools = NonNullable<ResponseRequest['tools']>;

/** Kinds of tools that the caller runs. All other kinds run at OpenAI. */
const KINDS = ['function', 'custom', 'namespace'];

/**
 * Removes the tools of OpenAI's own servers from a body, if unknown fields are dropped. They are reported as `tools.web_search`. `paths`
 * gets the paths of the remaining tools in the caller's request, and `validation` uses them.
 */
export function withoutServerTools(
  body: unknown,
  validation: ValidationOptions,
): { readonly body: unknown; readonly paths: PathTranslation; readonly validation: ValidationOptions } {
  const paths = new PathTranslation();
  const { dropUnknown, onDropped } = validation;
  const { tools, tool_choice: choice } = (body ?? {}) as { tools?: unknown; tool_choice?: unknown };
  if (!dropUnknown || !Array.isArray(tools)) return { body, paths, validation };
  const own = tools.flatMap((tool: unknown, i) => (isServerTool(tool) ? [] : [i]));
  if (own.length === tools.length) return { body, paths, validation };
  if (own.length === 0 && choice === 'required')
    throwFaults([fault(['tool_choice'], 'conflict', 'at least one tool that the caller runs', choice)]);
  for (const tool of tools) if (isServerTool(tool)) onDropped?.(`tools.${(tool as { type: string }).type}`);
  for (const [to, from] of own.entries()) paths.note(`tools.${to}`, `tools.${from}`);
  return {
    body: { ...(body as object), tools: own.map((i) => tools[i] as unknown) },
    paths,
    validation: { ...validation, onDropped: (path) => onDropped?.(paths.of(path)) },
  };
}

/** Returns true for a kind of OpenAI's servers. A kind that is nearly one of ours is a misspelling instead. */
function isServerTool(tool: unknown): boolean {
  const { type } = (tool ?? {}) as { type?: unknown };
  return typeof type === 'string' && closestName(type, KINDS) === null;
}

type Named = { readonly name: string; readonly namespace?: string | null | undefined };

/** Returns the name of a tool in a chat. */
export function flatName({ name, namespace }: Named): string {
  return namespace == null ? name : `${namespace}__${name}`;
}

/** A tool by its name and namespace in the request. */
export type CalledTool = { name: string; namespace?: string };

/** Returns a function from the name of a tool in a chat to the tool. Tools in a namespace have a longer name in the chat. */
export function namesOfTools(tools: ResponseRequest['tools']): (name: string) => CalledTool {
  const known = new Map<string, CalledTool>();
  for (const { tool, namespace } of flattened(tools ?? []))
    if (namespace !== undefined)
      known.set(flatName({ name: tool.name, namespace }), { name: tool.name, namespace });
  return (name) => known.get(name) ?? { name };
}

/** Translates tools. Throws if a tool in a namespace gets the name of another tool. */
export function toTools(tools: ResponseTools, paths: PathTranslation): Tool[] {
  const names = new Set<string>();
  return flattened(tools).map(({ tool, namespace, path }, i) => {
    const name = flatName({ name: tool.name, namespace });
    if (names.has(name) && namespace !== undefined)
      throwFaults([fault([...path.split('.'), 'name'], 'conflict', 'a name that no other tool has', name)]);
    names.add(name);
    const make = tool.type === 'custom' ? toCustomTool(tool, name) : toFunction(tool, name);
    paths.note(`tools.${i}.${make.type}`, path);
    if (make.type === 'custom') paths.note(`tools.${i}.custom.format.grammar`, `${path}.format`);
    return make;
  });
}

type FlatTool = {
  readonly tool: ResponseFunctionTool | ResponseCustomTool;
  readonly namespace?: string | undefined;
  readonly path: string;
};

function flattened(tools: ResponseTools): FlatTool[] {
  return tools.flatMap((tool, i): FlatTool[] =>
    tool.type === 'namespace'
      ? tool.tools.map((inner, j) => ({
          tool: inner,
          namespace: tool.name,
          path: `tools.${i}.tools.${j}`,
        }))
      : [{ tool, path: `tools.${i}` }],
  );
}

function toFunction({ description, parameters, strict }: ResponseFunctionTool, name: string): Tool {
  const more = { ...(description == null ? {} : { description }), ...(strict == null ? {} : { strict }) };
  return { type: 'function', function: { name, ...(parameters ? { parameters } : {}), ...more } };
}

function toCustomTool({ description, format }: ResponseCustomTool, name: string): Tool {
  const isGrammar = format?.type === 'grammar';
  const grammar = isGrammar ? { syntax: format.syntax!, definition: format.definition! } : null;
  return {
    type: 'custom',
    custom: {
      name,
      ...(description == null ? {} : { description }),
      ...(grammar ? { format: { type: 'grammar', grammar } } : {}),
    },
  };
}
