/** What a request constrains -> one matcher per choice: structured outputs, or the calls that `tool_choice` demands. */
import type { LoadedModel } from '../backends/index.ts';
import { OnpolicyError } from '../errors.ts';
import type { MessageFormat } from '../models/index.ts';
import { type Handle, loadAddon } from '../native/index.ts';
import type { ValidChatRequest } from '../protocol/index.ts';
import { compileConstraint, constraintHandle, type StructuredOutputs } from '../structured/index.ts';
import { type ToolDefinition, toolCallStructuralTag } from '../tool-calls/index.ts';

type Tool = ValidChatRequest['tools'][number];

/** The specification that constrains an answer, and the format of its tool calls under it. */
export type ConstraintPlan = { readonly spec: StructuredOutputs | null; readonly format: MessageFormat };

/**
 * Decides what constrains an answer. Forced calls of formats that no grammar can describe are written as plain JSON. With
 * `auto`, a tool that is `strict` makes calls a constraint wherever the model begins one, if the format tells them from text.
 */
export function planConstraint(request: ValidChatRequest, format: MessageFormat): ConstraintPlan {
  const { tools, tool_choice: choice, parallel_tool_calls: parallel, structured_outputs: spec } = request;
  const specialTokens = format.markerTexts;
  if (choice === 'auto' && spec === null && tools.some(isStrict)) {
    const reasoning = format.reasoning?.kind === 'tags' ? { reasoning: format.reasoning } : {};
    const options = { specialTokens, ...reasoning };
    const tag = toolCallStructuralTag(format.tools, tools.map(asFarAsStrict), choice, parallel, options);
    return { spec: tag && { structural_tag: tag }, format };
  }
  if (choice !== 'required' && typeof choice !== 'object') return { spec, format };
  if (spec !== null)
    throw new OnpolicyError(
      'INVALID_REQUEST',
      'tool_choice: a forced call cannot be held to structured outputs too',
      {
        param: 'tool_choice',
      },
    );
  const wanted = typeof choice === 'object' ? { name: choice.function.name } : choice;
  const tag = toolCallStructuralTag(format.tools, tools, wanted, parallel, { specialTokens });
  if (tag) return { spec: { structural_tag: tag }, format };
  const plain = toolCallStructuralTag('json', tools, wanted, parallel);
  return { spec: { structural_tag: plain! }, format: { ...format, tools: 'json' } };
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
  spec: StructuredOutputs | null,
  choices: number,
  model: LoadedModel,
): Promise<Handle[]> {
  if (spec === null) return [];
  const constraint = constraintHandle(await compileConstraint(spec, await model.vocabulary()));
  const { grammar } = loadAddon();
  return Array.from({ length: choices }, () => grammar.createMatcher(constraint));
}
