/** What a request constrains -> one matcher per choice: structured outputs, or the calls that `tool_choice` demands. */
import type { LoadedModel } from '../backends/index.ts';
import { errorAt } from '../errors.ts';
import type { MessageFormat } from '../models/index.ts';
import { grammarAddon, type Handle } from '../native/index.ts';
import { CUSTOM_INPUT, type ValidChatRequest } from '../protocol/index.ts';
import {
  type CallerPaths,
  compileChecked,
  constraintHandle,
  kindOf,
  OWN_PATHS,
  type StructuredOutputs,
} from '../structured/index.ts';
import { formatRow, type ToolDefinition, toolCallStructuralTag } from '../tool-calls/index.ts';

type Tool = ValidChatRequest['tools'][number];

/** A specification without faults, and where the caller gave it. */
export type ConstraintSpec = { readonly spec: StructuredOutputs; readonly paths: CallerPaths };

/** What constrains an answer, and the format of its tool calls under it. */
export type ConstraintPlan = {
  readonly constraint: ConstraintSpec | null;
  /** The constraint describes the reasoning before the answer, too, and begins with the first token. */
  readonly coversReasoning: boolean;
  readonly format: MessageFormat;
  /** Grammars of tools that constrain nothing here: compiled for their faults alone. Null: there are none. */
  readonly unused: ConstraintSpec | null;
};

/**
 * Decides what constrains an answer. Forced calls of formats that no grammar can describe are written as plain JSON. With
 * `auto`, a tool that is `strict` makes calls a constraint wherever the model begins one, if the format tells them from text.
 */
export function planConstraint(request: ValidChatRequest, format: MessageFormat): ConstraintPlan {
  const { tool_choice: choice, structured_outputs: own, allowed_tools: allowed } = request;
  const parallel = request.parallel_tool_calls && !request.uses_functions;
  const tools = request.tools
    .filter((tool) => allowed?.has(tool.function.name) ?? true)
    .map((tool) => withGrammar(tool, request));
  const specialTokens = format.markerTexts;
  const calls = (structural_tag: NonNullable<StructuredOutputs['structural_tag']>): ConstraintSpec => ({
    spec: { structural_tag },
    paths: toolPaths(request),
  });
  const isBound = allowed !== null || tools.some(isStrict);
  if (choice === 'auto' && own === null && isBound) {
    const reasoning = format.reasoning?.kind === 'tags' ? { reasoning: format.reasoning } : {};
    const options = { specialTokens, ...reasoning };
    const bound = tools.map((tool) => asFarAsStrict(tool, request));
    const tag = toolCallStructuralTag(format.tools, bound, choice, parallel, options);
    if (tag) return { constraint: calls(tag), coversReasoning: false, format, unused: null };
  }
  if (choice !== 'required' && typeof choice !== 'object') {
    const from = request.constraint_field;
    const paths =
      from === 'structured_outputs'
        ? OWN_PATHS
        : { of: (field: string) => (field === 'json' ? from : 'response_format') };
    const texts = choice === 'auto' ? tools.filter(({ text }: ToolDefinition) => text) : [];
    const unused = texts.length > 0 ? calls(toolCallStructuralTag('json', texts, 'required', true)!) : null;
    return { constraint: own && { spec: own, paths }, coversReasoning: false, format, unused };
  }
  if (own !== null)
    throw errorAt('tool_choice', 'INVALID_REQUEST', 'a forced call cannot be held to structured outputs too');
  const tag = toolCallStructuralTag(format.tools, tools, choice, parallel, { specialTokens });
  const coversReasoning = formatRow(format.tools).writes?.thoughts !== undefined;
  if (tag) return { constraint: calls(tag), coversReasoning, format, unused: null };
  const plain = toolCallStructuralTag('json', tools, choice, parallel)!;
  return {
    constraint: calls(plain),
    coversReasoning: false,
    format: { ...format, tools: 'json' },
    unused: null,
  };
}

/** The schemas and grammars of tools are parts of the constraint. */
function toolPaths({ tools, custom_tools: custom, uses_functions }: ValidChatRequest): CallerPaths {
  const parts = new Map<unknown, string>();
  for (const [index, { function: tool }] of tools.entries()) {
    const grammar = custom.get(tool.name)?.definition;
    const path = grammar === undefined ? 'function.parameters' : 'custom.format.grammar.definition';
    const part = grammar ?? tool.parameters;
    if (part && !parts.has(part))
      parts.set(part, uses_functions ? `functions.${index}.parameters` : `tools.${index}.${path}`);
  }
  return { of: () => (uses_functions ? 'functions' : 'tools'), parts };
}

/** A tool with the grammar of its text, if it has one. */
function withGrammar(tool: Tool, { custom_tools: custom }: ValidChatRequest): Tool & ToolDefinition {
  const grammar = custom.get(tool.function.name);
  return grammar ? { ...tool, text: { argument: CUSTOM_INPUT, ...grammar } } : tool;
}

function isStrict(tool: Tool & ToolDefinition): boolean {
  return tool.function.strict === true || tool.text !== undefined;
}

/** A function that is not strict accepts any object. */
function asFarAsStrict(
  tool: Tool & ToolDefinition,
  { custom_tools: custom }: ValidChatRequest,
): ToolDefinition {
  const { name } = tool.function;
  return isStrict(tool) || custom.has(name) ? tool : { function: { name, parameters: { type: 'object' } } };
}

/** What holds an answer to its constraint. */
export type Matchers = {
  /** One per choice. Empty: nothing is constrained. */
  readonly matchers: readonly Handle[];
  /** What the answer is not held to, by the caller's path. */
  readonly warnings: readonly string[];
};

/** Compiles off the event loop, once per specification and model; then one matcher per choice. */
export async function createMatchers(
  { constraint, unused }: Pick<ConstraintPlan, 'constraint' | 'unused'>,
  choices: number,
  model: LoadedModel,
): Promise<Matchers> {
  if (unused) await compileChecked(unused.spec, await model.vocabulary(), unused.paths);
  if (constraint === null) return { matchers: [], warnings: [] };
  const { spec, paths } = constraint;
  const compiled = await compileChecked(spec, await model.vocabulary(), paths);
  const grammar = grammarAddon();
  const handle = constraintHandle(compiled);
  return {
    matchers: Array.from({ length: choices }, () => grammar.createMatcher(handle)),
    warnings: compiled.relaxed.map((warning) => paths.of(kindOf(spec)) + warning),
  };
}
