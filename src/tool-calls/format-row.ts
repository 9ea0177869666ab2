/** What one tool-call format is: how its calls are read, how a grammar writes them, and which templates have it. */
import type { Family } from './context.ts';

/** A fixed text, or a regular expression. */
type Part = string | { readonly pattern: string };

/** The syntax of one call: `begin`, the name, `middle`, the arguments, `end`. */
export type ToolCallSyntax = {
  /** Markers around a list of calls. */
  readonly section?: { readonly begin: string; readonly end: string };
  readonly begin: string;
  /** `json`: the name is a JSON string. */
  readonly name: 'plain' | 'json';
  readonly middle: readonly Part[];
  /** `json`: the arguments are a JSON object. Otherwise parameters in this style of the grammar engine. */
  readonly arguments: ArgumentStyle;
  /** What stands around an argument that is a text, for styles with tags. Default: as in JSON. */
  readonly textArgument?: (name: string) => readonly [begin: string, end: string];
  readonly end: string;
  /** The separator of two calls; null: an answer has one. */
  readonly separator: string | null;
  /** A text that begins only calls; null if a call may begin like other text. */
  readonly trigger: string | null;
  /** Reasoning that may come before forced calls, where calls follow it in a message of their own, which starts with `next`. */
  readonly thoughts?: { readonly begin: string; readonly end: string; readonly next: string };
};

/** How arguments are written. */
export type ArgumentStyle =
  | 'json'
  | 'qwen_xml'
  | 'seed_xml'
  | 'glm_xml'
  | 'hunyuan_xml'
  | 'minimax_xml'
  | 'minicpm_xml'
  | 'deepseek_xml'
  | 'python'
  | 'gemma';

/** A text or pattern that stands in a chat template. */
export type Sign = string | RegExp;

/** A format. */
export type FormatRow = {
  /** The parser of its calls. */
  readonly reads: Family;
  /** Its calls for the grammar engine. Absent: forced calls are written and read as `json`. */
  readonly writes?: ToolCallSyntax;
  /** A template has this format if it has all signs of one of these lists. */
  readonly seenBy: readonly (readonly Sign[])[];
};
