/** The constraints of a request -> one matcher per choice: structured outputs, or the calls that `tool_choice` demands. */

import { grammarAddon, type Handle } from '../engine/native/index.ts';
import type { LoadedModel } from '../models/formats/index.ts';
import { CUSTOM_INPUT, type ValidChatRequest } from '../protocol/index.ts';
import {
  type CallerPaths,
  compileChecked,
  constraintHandle,
  kindOf,
  OWN_PATHS,
  type StructuredOutputs,
  toCallerWarning,
} from '../structured/index.ts';
import type { MessageFormat } from '../template/chat-format/index.ts';
import type { ReasoningFormat } from '../template/reasoning/index.ts';
import {
  formatRow,
  type StructuralTag,
  type ToolCallChoice,
  type ToolDefinition,
  type ToolFormat,
  toolCallStructuralTag,
} from '../template/tool-calls/index.ts';
import { type TextNode, textNode } from './text-node.ts';

type Tool = ValidChatRequest['tools'][number];

/** A validated specification, and the fields of the request that its parts were given in. */
export type ConstraintSpec = { readonly spec: StructuredOutputs; readonly paths: CallerPaths };

/** The constraint of an answer, and the format of its tool calls under it. */
export type ConstraintPlan = {
  readonly constraint: ConstraintSpec | null;
  /** True if the constraint describes the reasoning before the answer too, and so applies from the first token on. */
  readonly coversReasoning: boolean;
  readonly format: MessageFormat;
  /**
   * A constraint that does not apply here and is compiled only to report its errors: grammars of tools, or a schema beside forced calls.
   * Null if there is none.
   */
  readonly unused: ConstraintSpec | null;
};

/**
 * Decides which constraint an answer has. Forced calls in a format that no grammar can describe are written as plain JSON. With `auto`, a
 * `strict` tool constrains every call that the model begins, if the format separates calls from text; and an answer under structured
 * outputs is either calls or a text that matches them. `isReasoningOpen`: the prompt has begun the reasoning.
 */
export function planConstraint(
  request: ValidChatRequest,
  format: MessageFormat,
  isReasoningOpen: boolean,
): ConstraintPlan {
  const { tool_choice: choice, structured_outputs: own, allowed_tools: allowed } = request;
  const free = { coversReasoning: false, format, unused: null };
  const alone = own && { spec: own, paths: ownPaths(request) };
  if (choice === 'none') return { ...free, constraint: alone };
  const tools = request.tools
    .filter((tool) => allowed?.has(tool.function.name) ?? true)
    .map((tool) => withGrammar(tool, request));
  if (choice !== 'auto')
    return { ...planCalls(request, format, tools, choice, { isReasoningOpen }), unused: alone };
  const reasoning = format.reasoning?.kind === 'tags' ? { reasoning: format.reasoning } : {};
  const bound = tools.map((tool) => asFarAsStrict(tool, request));
  if (own !== null) {
    const text = textNode(own);
    const beside = { text, isReasoningOpen, ...(isReasoningOpen ? {} : reasoning) };
    return { ...planCalls(request, format, bound, choice, beside), unused: null };
  }
  if (allowed !== null || tools.some(isStrict)) {
    const options = { specialTokens: format.markerTexts, ...reasoning };
    const tag = toolCallStructuralTag(format.tools, bound, choice, isParallel(request), options);
    if (tag) return { ...free, constraint: { spec: { structural_tag: tag }, paths: toolPaths(request) } };
  }
  const texts = tools.filter(({ text }: ToolDefinition) => text);
  if (texts.length === 0) return { ...free, constraint: null };
  const structural_tag = toolCallStructuralTag('json', texts, 'required', true)!;
  return { ...free, constraint: null, unused: { spec: { structural_tag }, paths: toolPaths(request) } };
}

/** Parts of an answer that the constraint allows in addition to calls. */
type BesideCalls = {
  readonly isReasoningOpen: boolean;
  readonly reasoning?: ReasoningFormat;
  readonly text?: TextNode;
};

/** Plans a constraint that allows only calls, or with `text` either calls or a text that matches it. */
function planCalls(
  request: ValidChatRequest,
  format: MessageFormat,
  tools: readonly ToolDefinition[],
  choice: ToolCallChoice,
  { text, ...others }: BesideCalls,
): Omit<ConstraintPlan, 'unused'> {
  const beside = text ? { ...others, text: text.format } : others;
  const tagOf = (tools_: ToolFormat, specialTokens: ReadonlySet<string>): StructuralTag | null =>
    toolCallStructuralTag(tools_, tools, choice, isParallel(request), { specialTokens, ...beside });
  const tag = tagOf(format.tools, format.markerTexts);
  const structural_tag = tag ?? tagOf('json', format.markerTexts)!;
  return {
    constraint: { spec: { ...text?.options, structural_tag }, paths: toolPaths(request, text) },
    coversReasoning: tag !== null && formatRow(format.tools).writes?.thoughts !== undefined,
    format: tag ? format : { ...format, tools: 'json' },
  };
}

function isParallel({ parallel_tool_calls, uses_functions }: ValidChatRequest): boolean {
  return parallel_tool_calls && !uses_functions;
}

/** Returns the fields of the request in which the constraint of the text was given. */
function ownPaths({ constraint_field: from }: ValidChatRequest): CallerPaths {
  if (from === 'structured_outputs') return OWN_PATHS;
  return { of: (field) => (field === 'json' ? from : 'response_format') };
}

/** Returns the fields of the request for a constraint made of the schemas and grammars of tools and, if given, of a text's constraint. */
function toolPaths(request: ValidChatRequest, text?: TextNode): CallerPaths {
  const { tools, custom_tools: custom, uses_functions } = request;
  const own = ownPaths(request);
  const parts = new Map<unknown, string>();
  for (const [part, field] of text?.parts ?? []) parts.set(part, own.of(field));
  for (const [index, { function: tool }] of tools.entries()) {
    const grammar = custom.get(tool.name)?.definition;
    const path = grammar === undefined ? 'function.parameters' : 'custom.format.grammar.definition';
    const part = grammar ?? tool.parameters;
    if (part && !parts.has(part))
      parts.set(part, uses_functions ? `functions.${index}.parameters` : `tools.${index}.${path}`);
  }
  const all = uses_functions ? 'functions' : 'tools';
  return { of: (field) => (field === 'structural_tag' ? all : own.of(field)), parts };
}

/** Returns a tool, with the grammar of its input if it is a custom tool that has one. */
function withGrammar(tool: Tool, { custom_tools: custom }: ValidChatRequest): Tool & ToolDefinition {
  const grammar = custom.get(tool.function.name);
  return grammar ? { ...tool, text: { argument: CUSTOM_INPUT, ...grammar } } : tool;
}

function isStrict(tool: Tool & ToolDefinition): boolean {
  return tool.function.strict === true || tool.text !== undefined;
}

/** Returns a strict or custom tool unchanged, and any other with a schema that accepts every object. */
function asFarAsStrict(
  tool: Tool & ToolDefinition,
  { custom_tools: custom }: ValidChatRequest,
): ToolDefinition {
  const { name } = tool.function;
  return isStrict(tool) || custom.has(name) ? tool : { function: { name, parameters: { type: 'object' } } };
}

/** Compiled constraint of an answer. */
export type Matchers = {
  /** One per choice. Empty if the answer is unconstrained. */
  readonly matchers: readonly Handle[];
  /** Parts of the constraint that are not enforced, each with the path of its field in the request. */
  readonly warnings: readonly string[];
};

/** Compiles the constraint off the event loop, once per specification and model, and creates one matcher per choice. */
export async function createMatchers(
  { constraint, unused }: Pick<ConstraintPlan, 'constraint' | 'unused'>,
  choices: number,
  model: LoadedModel,
  signal?: AbortSignal,
): Promise<Matchers> {
  if (unused) await compileChecked(unused.spec, await model.vocabulary(), unused.paths, signal);
  if (constraint === null) return { matchers: [], warnings: [] };
  const { spec, paths } = constraint;
  const compiled = await compileChecked(spec, await model.vocabulary(), paths, signal);
  const grammar = grammarAddon();
  const handle = constraintHandle(compiled);
  return {
    matchers: Array.from({ length: choices }, () => grammar.createMatcher(handle)),
    warnings: compiled.relaxed.map((warning) => toCallerWarning(warning, spec, kindOf(spec), paths)),
  };
}
