/** A constraint of a whole answer -> the same as a node of a structural tag, so that other answers can stand beside it. */
import { isObject, parseJson } from '../common/index.ts';
import type { ValidStructuredOutputs } from '../protocol/index.ts';
import { kindOf, type StructuredOutputs } from '../structured/index.ts';
import type { StructuralFormat } from '../template/tool-calls/index.ts';

/** The constraint as a node, its JSON options, and the caller's values that are parts of the node, each with its field. */
export type TextNode = {
  readonly format: StructuralFormat;
  readonly options: StructuredOutputs;
  readonly parts: ReadonlyMap<unknown, keyof StructuredOutputs>;
};

export function textNode(own: ValidStructuredOutputs): TextNode {
  const { json, regex, choice, grammar, json_object: _, structural_tag: tag, ...options } = own;
  const kind = kindOf(own);
  const made = (format: StructuralFormat, part?: unknown): TextNode => ({
    format,
    options,
    parts: new Map(part === undefined ? [] : [[part, kind]]),
  });
  switch (kind) {
    case 'json': {
      const schema = typeof json === 'string' ? parseJson(json) : json;
      return made({ type: 'json_schema', json_schema: schema }, schema);
    }
    case 'json_object':
      return made({ type: 'json_schema', json_schema: { type: 'object' } });
    case 'regex':
      return made({ type: 'regex', pattern: regex! }, regex);
    case 'choice':
      return made({ type: 'or', elements: choice!.map((value) => ({ type: 'const_string', value })) });
    case 'grammar':
      return made(
        { type: 'grammar', grammar: grammar!, syntax: isLark(grammar!) ? 'lark' : 'ebnf' },
        grammar,
      );
    case 'structural_tag': {
      const format = taggedFormat(parseJson(tag!) as TagForms);
      return made(format, format);
    }
    default:
      return kind satisfies never;
  }
}

/** Returns true if a grammar has no `::=` outside comments. */
function isLark(grammar: string): boolean {
  return !grammar.split('\n').some((line) => line.replace(/(#|\/\/).*/, '').includes('::='));
}

/** The two forms of a structural tag. */
type TagForms = {
  readonly format?: StructuralFormat;
  readonly structures?: readonly {
    readonly begin: string;
    readonly schema?: unknown;
    readonly end: string;
  }[];
  readonly triggers?: readonly string[];
};

/** Returns the node of a structural tag, converted if it has the older form. */
function taggedFormat({ format, structures = [], triggers = [] }: TagForms): StructuralFormat {
  if (isObject(format)) return format as StructuralFormat;
  const tags = structures.map(({ begin, schema = true, end }) => ({
    type: 'tag',
    begin,
    content: { type: 'json_schema', json_schema: schema },
    end,
  }));
  return { type: 'triggered_tags', triggers, tags };
}
