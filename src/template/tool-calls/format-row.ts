/** The type of a tool-call format: the parser of its calls, their syntax for grammars, and the signs of its templates. */
import type { Family } from './context.ts';

/** A fixed text, a regular expression, or the name once more. */
type Part = string | { readonly pattern: string } | { readonly repeats: 'name' };

/** The syntax of one call: `begin`, the name, `middle`, the arguments, `end`. */
export type ToolCallSyntax = {
  /** Markers around a list of calls. */
  readonly section?: { readonly begin: string; readonly end: string };
  readonly begin: string;
  /** `json` means that the name is a JSON string. */
  readonly name: 'plain' | 'json';
  readonly middle: readonly Part[];
  /** `json` means that the arguments are a JSON object. Other values are styles of parameters of the grammar engine. */
  readonly arguments: ArgumentStyle;
  /** Returns the texts around an argument that is a text, for styles with tags. Default: as in JSON. */
  readonly textArgument?: (name: string) => readonly [begin: string, end: string];
  readonly end: string;
  /** The separator between calls. Null means that an answer has only one call. */
  readonly separator: string | null;
  /** A text that only calls begin with. Null if a call may begin like other text. */
  readonly trigger: string | null;
  /** Markers of reasoning before forced calls, in formats whose calls follow it in a separate message, which starts with `next`. */
  readonly thoughts?: { readonly begin: string; readonly end: string; readonly next: string };
  /** Marker that begins an answer that is text. Absent if such an answer has no marker. */
  readonly textBegin?: string;
};

/** Styles of arguments. */
export type ArgumentStyle =
  | 'json'
  | 'qwen_xml'
  | 'seed_xml'
  | 'glm_xml'
  | 'hunyuan_xml'
  | 'minimax_xml'
  | 'minicpm_xml'
  | 'atem_xml'
  | 'deepseek_xml'
  | 'python'
  | 'gemma';

/** A text or pattern in a chat template. */
export type Sign = string | RegExp;

/** A format. */
export type FormatRow = {
  /** The parser of its calls. */
  readonly reads: Family;
  /** Syntax of its calls for the grammar engine. If absent, forced calls are written and read as `json`. */
  readonly writes?: ToolCallSyntax;
  /** True if every answer is written and parsed in this format, even without tools. */
  readonly framesText?: true;
  /** A template has this format if it has all signs of one of these lists. */
  readonly seenBy: readonly (readonly Sign[])[];
};
