/** A format, tools and tool choice -> a structural tag, which restricts the answer to valid calls. */
import { errorAt } from '../../errors.ts';
import type { TextArgument, ToolDefinition } from './context.ts';
import type { ArgumentStyle, ToolCallSyntax } from './format-row.ts';
import { formatRow, type ToolFormat } from './formats.ts';

/** The request's `tool_choice`. */
export type ToolCallChoice = 'auto' | 'required' | { readonly name: string };

/** A structural tag of the new form. */
export type StructuralTag = { readonly type: 'structural_tag'; readonly format: StructuralFormat };
/** A node of the format tree. Its fields depend on its type. */
export type StructuralFormat = {
  readonly type: string;
  readonly value?: string;
  readonly token?: string;
  readonly pattern?: string;
  readonly grammar?: string;
  readonly syntax?: 'lark' | 'ebnf';
  /** For a pattern or grammar: its text is inside a JSON string. */
  readonly json_escaped?: true;
  readonly json_schema?: unknown;
  readonly style?: ArgumentStyle;
  readonly begin?: string | StructuralFormat;
  readonly content?: StructuralFormat;
  readonly end?: string | StructuralFormat;
  readonly elements?: readonly StructuralFormat[];
  readonly tags?: readonly StructuralFormat[];
  readonly separator?: string;
  readonly triggers?: readonly string[];
  readonly trigger_tokens?: readonly string[];
  readonly at_least_one?: boolean;
  readonly stop_after_first?: boolean;
};

/** Options of {@link toolCallStructuralTag}. */
export type StructuralTagOptions = {
  /** Texts of special tokens. The tag then requires the token instead of its characters. */
  readonly specialTokens?: ReadonlySet<string>;
  /** The markers of reasoning, for `auto`. Calls inside reasoning are text. */
  readonly reasoning?: { readonly begin: string; readonly end: string };
  /** True if the prompt has begun the reasoning before calls, in formats that write it as part of calls. */
  readonly isReasoningOpen?: boolean;
  /** For `auto`: the text of an answer without calls. An answer with calls then has no other text. Default: any text with calls in it. */
  readonly text?: StructuralFormat;
};

/**
 * Returns the structural tag of valid calls. `required`: one or more calls and no other text. A name: one call of that tool. `auto`:
 * any text, in which everything that begins like a call is one; or, with the option `text`, either calls or that text. `parallel`
 * false: at most one call. Returns null if the format has no syntax (use syntax and parser of `json`), and for `auto` with any text in
 * formats whose calls begin like other text, or with a text that contains a special token.
 */
export function toolCallStructuralTag(
  format: ToolFormat,
  tools: readonly ToolDefinition[],
  choice: ToolCallChoice,
  parallel: boolean,
  options: StructuralTagOptions = {},
): StructuralTag | null {
  const syntax = formatRow(format).writes;
  const isFree = choice === 'auto' && options.text === undefined;
  if (syntax === undefined || (isFree && syntax.trigger === null)) return null;
  const chosen =
    typeof choice === 'object' ? tools.filter((tool) => tool.function.name === choice.name) : tools;
  if (chosen.length === 0) {
    throw errorAt('tool_choice', 'INVALID_REQUEST', 'expected a tool that is in `tools`');
  }
  if (syntax.arguments === 'python' || syntax.arguments === 'gemma') {
    if (!chosen.every((tool) => hasWordKeys(tool.function.parameters))) return null;
  }
  const special = options.specialTokens ?? new Set();
  const calls = chosen.map((tool) => callTag(syntax, tool, special));
  const single = typeof choice === 'object';
  const list: StructuralFormat = {
    type: 'tags_with_separator',
    tags: calls,
    separator: syntax.separator ?? '',
    at_least_one: true,
    stop_after_first: !parallel || syntax.separator === null,
  };
  const { section, trigger } = syntax;
  const body = single ? calls[0]! : list;
  const tags = section
    ? [tag(textFormats(section.begin, special), [body], textFormats(section.end, special))]
    : calls;
  const { text, reasoning } = options;
  if (!isFree) {
    const forced = section ? tags[0]! : body;
    const format = choice === 'auto' ? either(framedText(syntax, text!, special), forced) : forced;
    const thoughts = syntax.thoughts ?? (choice === 'auto' ? reasoning : undefined);
    const isOpen = syntax.thoughts !== undefined && options.isReasoningOpen;
    return {
      type: 'structural_tag',
      format: thoughts ? behindThoughts(thoughts, format, special, isOpen) : format,
    };
  }
  const starts = textFormats(trigger!, special);
  if (starts.length > 1) return null;
  const free = triggered(trigger!, starts[0]!, tags, !parallel);
  return { type: 'structural_tag', format: reasoning ? behindThoughts(reasoning, free, special) : free };
}

function either(...elements: readonly StructuralFormat[]): StructuralFormat {
  return { type: 'or', elements };
}

/** Returns the format of an answer that is this text, after the marker that begins text in the format. */
function framedText(
  { textBegin }: ToolCallSyntax,
  text: StructuralFormat,
  special: ReadonlySet<string>,
): StructuralFormat {
  if (textBegin === undefined) return text;
  return { type: 'sequence', elements: [...textFormats(textBegin, special), text] };
}

/** Returns `rest` after reasoning, which is optional unless it is already open, and after `next`, which starts the next message. */
function behindThoughts(
  { begin, end, next = '' }: { readonly begin: string; readonly end: string; readonly next?: string },
  rest: StructuralFormat,
  special: ReadonlySet<string>,
  isOpen = false,
): StructuralFormat {
  const begins = isOpen ? [] : textFormats(begin, special);
  const thoughts = tag(begins, [{ type: 'any_text' }], textFormats(end, special));
  const content: StructuralFormat =
    next === '' ? thoughts : { type: 'sequence', elements: [thoughts, ...textFormats(next, special)] };
  return { type: 'sequence', elements: [isOpen ? content : { type: 'optional', content }, rest] };
}

/** Returns the format of free text in which `trigger`, a text or a token, begins one of `tags`. */
function triggered(
  trigger: string,
  start: StructuralFormat,
  tags: readonly StructuralFormat[],
  stopAfterFirst: boolean,
): StructuralFormat {
  const rest = { tags, at_least_one: false, stop_after_first: stopAfterFirst };
  return start.type === 'token'
    ? { type: 'token_triggered_tags', trigger_tokens: [start.token!], ...rest }
    : { type: 'triggered_tags', triggers: [trigger], ...rest };
}

function callTag(
  syntax: ToolCallSyntax,
  tool: ToolDefinition,
  special: ReadonlySet<string>,
): StructuralFormat {
  const { name, parameters } = tool.function;
  const written = syntax.name === 'json' ? JSON.stringify(name) : name;
  const schema = parameters ?? { type: 'object', properties: {}, additionalProperties: false };
  const begin: StructuralFormat[] = [];
  let text = syntax.begin + written;
  for (const part of syntax.middle) {
    if (typeof part === 'string') text += part;
    else if ('repeats' in part) text += name;
    else {
      begin.push(...textFormats(text, special), { type: 'regex', pattern: part.pattern });
      text = '';
    }
  }
  begin.push(...textFormats(text, special));
  const style = syntax.arguments === 'json' ? {} : { style: syntax.arguments };
  const content: StructuralFormat[] = tool.text
    ? textArgument(syntax, tool.text, special)
    : [{ type: 'json_schema', json_schema: schema, ...style }];
  return tag(begin, content, textFormats(syntax.end, special));
}

/** Returns the format of arguments that are a single text with its own grammar. */
function textArgument(
  { arguments: style, textArgument: around }: ToolCallSyntax,
  { argument, syntax, definition }: TextArgument,
  special: ReadonlySet<string>,
): StructuralFormat[] {
  const escaped = style === 'json' || style === 'python' ? { json_escaped: true as const } : {};
  const text: StructuralFormat =
    syntax === 'regex'
      ? { type: 'regex', pattern: definition, ...escaped }
      : { type: 'grammar', grammar: definition, syntax, ...escaped };
  const [begin, end] = around?.(argument) ?? [`{${JSON.stringify(argument)}: "`, '"}'];
  return [...textFormats(begin, special), text, ...textFormats(end, special)];
}

/** Returns true if all keys of a schema can be written without quotes. */
function hasWordKeys(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return true;
  const { properties } = schema as { properties?: unknown };
  const keys = typeof properties === 'object' && properties !== null ? Object.keys(properties) : [];
  return keys.every((key) => /^[A-Za-z_][\w.-]*$/.test(key)) && Object.values(schema).every(hasWordKeys);
}

/** Returns a tag from formats of its begin, its content and its end. */
function tag(
  begin: readonly StructuralFormat[],
  content: readonly StructuralFormat[],
  end: readonly StructuralFormat[],
): StructuralFormat {
  const elements = [...begin.slice(1), ...content, ...end.slice(0, -1)];
  return {
    type: 'tag',
    begin: beginOrEnd(begin[0]),
    content: elements.length === 1 ? elements[0]! : { type: 'sequence', elements },
    end: beginOrEnd(end.at(-1)),
  };
}

function beginOrEnd(format: StructuralFormat | undefined): string | StructuralFormat {
  return format === undefined ? '' : (format.value ?? format);
}

/** Returns a text as formats: plain text, and tokens for the texts of special tokens. */
function textFormats(text: string, special: ReadonlySet<string>): StructuralFormat[] {
  const formats: StructuralFormat[] = [];
  let plain = '';
  const endPlain = (): void => {
    if (plain !== '') formats.push({ type: 'const_string', value: plain });
    plain = '';
  };
  for (let at = 0; at < text.length; ) {
    const token = [...special].filter((one) => one !== '' && text.startsWith(one, at)).sort(longestFirst)[0];
    if (token === undefined) plain += text[at++];
    else {
      endPlain();
      formats.push({ type: 'token', token });
      at += token.length;
    }
  }
  endPlain();
  return formats;
}

function longestFirst(a: string, b: string): number {
  return b.length - a.length;
}
