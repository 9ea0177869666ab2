/** A chat and its template -> prompt text. */

import { isObject, parseJson } from '../common/index.ts';
import { errorAt, OnpolicyError } from '../errors.ts';
import { type Root, TemplateCompiler } from './compiler.ts';
import { cutAtTag, markFinalMessage } from './continue-final.ts';
import { toValue } from './convert.ts';
import { locate } from './python/py-error.ts';
import { DEFAULT_LIMITS, RenderState, type TemplateLimits } from './python/render-state.ts';
import { Dict, isList, type Value } from './python/values.ts';
import { type AssistantSpan, chooseMarks, splitMarked } from './spans.ts';
import { loopsOverContent } from './syntax/content-format.ts';
import { normaliseSource } from './syntax/lexer.ts';
import type { NodeOf } from './syntax/nodes.ts';
import { parse } from './syntax/parser.ts';
import { toTemplateError } from './template-error.ts';

/** Input of a chat template. */
export type RenderInput = {
  /** The conversation. Objects may be plain objects or Maps; a Map keeps number-like keys in order. */
  readonly messages: readonly unknown[];
  /** Tool definitions. Without them the template sees None. */
  readonly tools?: readonly unknown[] | null | undefined;
  /** Documents for retrieval. Without them the template sees None. */
  readonly documents?: readonly unknown[] | null | undefined;
  /** If true, the prompt ends with the start of an assistant message. Default false. */
  readonly addGenerationPrompt?: boolean | undefined;
  /** If true, the prompt ends inside the last message, which the model continues. Default false. */
  readonly continueFinalMessage?: boolean | undefined;
  /** Further variables. They override all others. */
  readonly kwargs?: Readonly<Record<string, unknown>> | ReadonlyMap<string, unknown> | null | undefined;
  /** The model's token for the beginning of a text. Without it the name is undefined in the template. */
  readonly bosToken?: string | null | undefined;
  /** The model's token for the end of a text. Without it the name is undefined in the template. */
  readonly eosToken?: string | null | undefined;
  /** Further special tokens by variable name, e.g. `pad_token`. */
  readonly specialTokens?: Readonly<Record<string, string>> | undefined;
};

/** Options of a render. */
export type RenderOptions = {
  /** Upper bounds, each with a safe default. */
  readonly limits?: Partial<TemplateLimits> | undefined;
  /** The clock of strftime_now. Default: the system clock. */
  readonly now?: (() => Date) | undefined;
  /**
   * If true, tool-call arguments that are JSON text are parsed to objects before rendering; a template that fails with
   * objects gets the text. Default false: the template sees the arguments unchanged.
   */
  readonly parseToolArguments?: boolean | undefined;
  /**
   * If true, a template that prints or iterates a field which a document lacks causes an error with code `INVALID_REQUEST`.
   * Default false: as in Jinja2, such a field is empty.
   */
  readonly requireDocumentFields?: boolean | undefined;
  /**
   * If true, `append` and `pop` work on lists that the template itself made. Default false: they are refused, as in transformers'
   * immutable sandbox. Some published templates, such as Kimi K2's, need it.
   */
  readonly growsLists?: boolean | undefined;
};

/** Rendered text with the spans that the assistant wrote. */
export type MaskedText = {
  readonly text: string;
  /** `[start, end)` in UTF-16 units of `text`, in order. */
  readonly assistantSpans: readonly AssistantSpan[];
};

/** The form of message contents that a template expects: text, or a list of parts. */
export type ContentFormat = 'string' | 'openai';

/** A compiled chat template. Renders share no state. */
export class ChatTemplate {
  /** Names that the template reads from its input: messages, tools, bos_token, kwargs. */
  readonly variables: ReadonlySet<string>;
  /** True if the template marks the assistant's text with generation blocks, as `renderWithMask` needs. */
  readonly hasGeneration: boolean;
  /** The normalised source. Offsets in errors refer to it. */
  readonly #source: string;
  readonly #tree: NodeOf<'Root'>;
  readonly #root: Root;
  #contentFormat: ContentFormat | null = null;

  /** @internal Use {@link compileChatTemplate}. */
  constructor(text: string) {
    this.#source = normaliseSource(text);
    const compiler = new TemplateCompiler();
    try {
      this.#tree = parse(this.#source);
      this.#root = compiler.root(this.#tree);
    } catch (error) {
      throw toTemplateError(error, this.#source);
    }
    this.variables = compiler.variables;
    this.hasGeneration = compiler.hasGeneration;
  }

  /** Returns true if the template's source contains a text. */
  mentions(text: string): boolean {
    return this.#source.includes(text);
  }

  /** `openai` if the template loops over the parts of a message's content, else `string`. */
  get contentFormat(): ContentFormat {
    this.#contentFormat ??= loopsOverContent(this.#tree) ? 'openai' : 'string';
    return this.#contentFormat;
  }

  /** Renders a chat. */
  render(input: RenderInput, options: RenderOptions = {}): string {
    return this.#withToolArguments(input, options, (chat) => this.#render(chat, options, null));
  }

  /** Renders a chat and returns the spans that the assistant wrote. */
  renderWithMask(input: RenderInput, options: RenderOptions = {}): MaskedText {
    if (!this.hasGeneration)
      throw new OnpolicyError('UNSUPPORTED', 'the chat template has no {% generation %} blocks');
    return this.#withToolArguments(input, options, (chat) => {
      const text = this.#render(chat, options, null);
      const marks = chooseMarks(text);
      const marked = splitMarked(this.#render(chat, options, marks), marks);
      // The marks change the result of a template that measures or changes the assistant's text.
      if (marked.text !== text)
        throw new OnpolicyError(
          'UNSUPPORTED',
          'the chat template changes the text of its generation blocks, so spans cannot be given',
        );
      return { text, assistantSpans: marked.spans };
    });
  }

  #render(input: RenderInput, options: RenderOptions, spanMarks: readonly [string, string] | null): string {
    const final = input.continueFinalMessage === true ? markFinalMessage(input.messages) : null;
    const variables = variablesOf(final === null ? input : { ...input, messages: final.messages });
    const state = new RenderState({
      paths: options.requireDocumentFields ? pathsIn(variables.get('documents')!, 'documents') : NO_PATHS,
      limits: options.limits ? { ...DEFAULT_LIMITS, ...definedOnly(options.limits) } : DEFAULT_LIMITS,
      now: options.now ?? (() => new Date()),
      spanMarks,
      growsLists: options.growsLists ?? false,
    });
    try {
      const text = this.#root(state, variables);
      state.checkOutput(text);
      return final === null ? text : cutAtTag(text, final.text);
    } catch (error) {
      throw toTemplateError(locate(error, state.at), this.#source);
    }
  }

  #withToolArguments<T>(input: RenderInput, options: RenderOptions, render: (input: RenderInput) => T): T {
    if (options.parseToolArguments !== true) return render(input);
    const parsed = parseToolArguments(input.messages);
    if (parsed === null) return render(input);
    try {
      return render({ ...input, messages: parsed });
    } catch (error) {
      try {
        return render(input);
      } catch {
        throw error; // the text fails as well, and the first error is more precise
      }
    }
  }
}

const NO_PATHS: ReadonlyMap<unknown, string> = new Map();

function definedOnly(limits: Partial<TemplateLimits>): Partial<TemplateLimits> {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined));
}

/** Returns the variables of a render: chat, special tokens, kwargs. Later ones override earlier ones. */
function variablesOf(input: RenderInput): Map<string, Value> {
  if (!Array.isArray(input.messages)) throw errorAt('messages', 'INVALID_REQUEST', 'expected an array');
  const variables = new Map<string, Value>([
    ['messages', toValue(input.messages, 'messages')],
    ['tools', toValue(input.tools ?? null, 'tools')],
    ['documents', toValue(input.documents ?? null, 'documents')],
    ['add_generation_prompt', input.addGenerationPrompt ?? false],
  ]);
  const tokens = { bos_token: input.bosToken, eos_token: input.eosToken, ...input.specialTokens };
  for (const [name, token] of Object.entries(tokens))
    if (typeof token === 'string') variables.set(name, token);
  const kwargs = input.kwargs ?? {};
  for (const [name, value] of kwargs instanceof Map ? kwargs : Object.entries(kwargs))
    if (value !== undefined) variables.set(name, toValue(value, `kwargs.${name}`));
  return variables;
}

/** Returns all values inside a list or a dict, with their paths. */
function pathsIn(value: Value, path: string, paths = new Map<Value, string>()): Map<Value, string> {
  const entries = isList(value) ? value.entries() : value instanceof Dict ? value.entries() : [];
  for (const [key, inner] of entries) {
    const at = `${path}.${String(key)}`;
    if (inner === null || paths.has(inner)) continue;
    paths.set(inner, at);
    pathsIn(inner, at, paths);
  }
  return paths;
}

const MAX_TEMPLATES = 64;
const MAX_CHARACTERS = 4_000_000;

const templates = new Map<string, ChatTemplate>();
let characters = 0;

/** Compiles a chat template, or returns it from the cache, which is bounded in entries and in characters. Errors are not cached. */
export function compileChatTemplate(source: string): ChatTemplate {
  if (typeof source !== 'string')
    throw new OnpolicyError('INVALID_REQUEST', `template: expected a string, got ${typeof source}`);
  const known = templates.get(source);
  if (known !== undefined) {
    templates.delete(source); // a Map keeps the order of insertion, so this moves the entry to the end
    templates.set(source, known);
    return known;
  }
  const template = new ChatTemplate(source);
  templates.set(source, template);
  characters += source.length;
  for (const oldest of templates.keys()) {
    if (templates.size <= MAX_TEMPLATES && characters <= MAX_CHARACTERS) break;
    templates.delete(oldest);
    characters -= oldest.length;
  }
  return template;
}

/** Renders a chat with a template given as text. Templates are cached by content. */
export function renderChatTemplate({
  template,
  ...rest
}: RenderInput & RenderOptions & { readonly template: string }): string {
  return compileChatTemplate(template).render(rest, rest);
}

type Fields = Readonly<Record<string, unknown>>;

function isFields(value: unknown): value is Fields {
  return isObject(value) && !(value instanceof Map);
}

/** Returns a copy of the messages with parsed arguments, or null if nothing was parsed. */
function parseToolArguments(messages: readonly unknown[]): readonly unknown[] | null {
  let isChanged = false;
  const parseCall = (call: unknown): unknown => {
    if (!isFields(call)) return call;
    if (isFields(call['function'])) {
      const inner = parseCall(call['function']);
      return inner === call['function'] ? call : { ...call, function: inner };
    }
    const parsed = parseObject(call['arguments']);
    if (parsed === null) return call;
    isChanged = true;
    return { ...call, arguments: parsed };
  };
  const result = messages.map((message) => {
    if (!isFields(message) || !Array.isArray(message['tool_calls'])) return message;
    const calls: readonly unknown[] = message['tool_calls'];
    return { ...message, tool_calls: calls.map(parseCall) };
  });
  return isChanged ? result : null;
}

/** Returns the object of a JSON text, or null for any other text. */
function parseObject(text: unknown): Fields | null {
  const value = typeof text === 'string' ? parseJson(text) : null;
  return isFields(value) ? value : null;
}
