/** What a request constrains -> one matcher per choice: structured outputs, or the calls that `tool_choice` demands. */
import type { LoadedModel } from '../backends/index.ts';
import { OnpolicyError } from '../errors.ts';
import type { MessageFormat } from '../models/index.ts';
import { type Handle, loadAddon } from '../native/index.ts';
import type { ValidChatRequest } from '../protocol/index.ts';
import {
  type CallerPaths,
  compileChecked,
  constraintHandle,
  OWN_PATHS,
  type StructuredOutputs,
} from '../structured/index.ts';
import { type ToolDefinition, toolCallStructuralTag } from '../tool-calls/index.ts';

type Tool = ValidChatRequest['tools'][number];

/** A specification without faults, and where the caller gave it. */
export type ConstraintSpec = { readonly spec: StructuredOutputs; readonly paths: CallerPaths };

/** What constrains an answer, and the format of its tool calls under it. */
export type ConstraintPlan = { readonly constraint: ConstraintSpec | null; readonly format: MessageFormat };

/** `response_format` as the caller wrote it. */
const FORMAT_PATHS: CallerPaths = {
  of: (field) => (field === 'json' ? 'response_format.json_schema.schema' : 'response_format'),
};

/**
 * Decides what constrains an answer. Forced calls of formats that no grammar can describe are written as plain JSON. With
 * `auto`, a tool that is `strict` makes calls a constraint wherever the model begins one, if the format tells them from text.
 */
export function planConstraint(request: ValidChatRequest, format: MessageFormat): ConstraintPlan {
  const { tools, tool_choice: choice, parallel_tool_calls: parallel, structured_outputs: own } = request;
  const specialTokens = format.markerTexts;
  const calls = (structural_tag: NonNullable<StructuredOutputs['structural_tag']>): ConstraintSpec => ({
    spec: { structural_tag },
    paths: toolPaths(tools),
  });
  if (choice === 'auto' && own === null && tools.some(isStrict)) {
    const reasoning = format.reasoning?.kind === 'tags' ? { reasoning: format.reasoning } : {};
    const options = { specialTokens, ...reasoning };
    const tag = toolCallStructuralTag(format.tools, tools.map(asFarAsStrict), choice, parallel, options);
    return { constraint: tag && calls(tag), format };
  }
  if (choice !== 'required' && typeof choice !== 'object') {
    const paths = request.constraint_field === 'response_format' ? FORMAT_PATHS : OWN_PATHS;
    return { constraint: own && { spec: own, paths }, format };
  }
  if (own !== null)
    throw new OnpolicyError(
      'INVALID_REQUEST',
      'tool_choice: a forced call cannot be held to structured outputs too',
      {
        param: 'tool_choice',
      },
    );
  const wanted = typeof choice === 'object' ? { name: choice.function.name } : choice;
  const tag = toolCallStructuralTag(format.tools, tools, wanted, parallel, { specialTokens });
  if (tag) return { constraint: calls(tag), format };
  const plain = toolCallStructuralTag('json', tools, wanted, parallel)!;
  return { constraint: calls(plain), format: { ...format, tools: 'json' } };
}

/** The schemas of tools are parts of the constraint. */
function toolPaths(tools: readonly Tool[]): CallerPaths {
  const parts = new Map<unknown, string>();
  for (const [index, tool] of tools.entries())
    if (tool.function.parameters) parts.set(tool.function.parameters, `tools[${index}].function.parameters`);
  return { of: () => 'tools', parts };
}

function isStrict(tool: Tool): boolean {
  return tool.function.strict === true;
}

/** A tool that is not strict accepts any object. */
function asFarAsStrict(tool: Tool): ToolDefinition {
  return isStrict(tool) ? tool : { function: { name: tool.function.name, parameters: { type: 'object' } } };
}

/** Compiles off the event loop, once per specification and model; then one matcher per choice. Empty: nothing is constrained. */
export async function createMatchers(
  constraint: ConstraintSpec | null,
  choices: number,
  model: LoadedModel,
): Promise<Handle[]> {
  if (constraint === null) return [];
  const compiled = await compileChecked(constraint.spec, await model.vocabulary(), constraint.paths);
  const { grammar } = loadAddon();
  const handle = constraintHandle(compiled);
  return Array.from({ length: choices }, () => grammar.createMatcher(handle));
}
