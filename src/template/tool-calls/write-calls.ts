/** Calls -> the text that a model would write for them, for templates that do not write calls themselves. */
import { isObject, parseJson } from '../../common/index.ts';
import type { ToolCallSyntax } from './format-row.ts';
import { formatRow, type ToolFormat } from './formats.ts';

/** A call with its arguments as JSON text. */
type WrittenCall = { readonly name: string; readonly arguments: string };

/** Returns the text of calls in a format. Formats whose arguments are neither JSON nor Python use that of `json`. */
export function callsText(format: ToolFormat, calls: readonly WrittenCall[]): string {
  const own = formatRow(format).writes;
  const syntax = own?.arguments === 'json' || own?.arguments === 'python' ? own : formatRow('json').writes!;
  const { section, separator } = syntax;
  const texts = calls.map((call, index) => callText(syntax, call, index));
  return `${section?.begin ?? ''}${texts.join(separator ?? '\n')}${section?.end ?? ''}`;
}

function callText(syntax: ToolCallSyntax, { name, arguments: text }: WrittenCall, index: number): string {
  const middle = syntax.middle.map((part) =>
    typeof part === 'string' ? part : 'repeats' in part ? name : String(index),
  );
  const written = syntax.name === 'json' ? JSON.stringify(name) : name;
  const given = syntax.arguments === 'python' ? pythonArguments(text) : text;
  return `${syntax.begin}${written}${middle.join('')}${given}${syntax.end}`;
}

/** Returns `KEY=VALUE, ...`. Text that is not an object becomes the value of one argument. */
function pythonArguments(text: string): string {
  const value = parseJson(text);
  const entries = Object.entries(isObject(value) ? value : { arguments: text });
  return entries.map(([key, one]) => `${key}=${pythonLiteral(one)}`).join(', ');
}

function pythonLiteral(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(', ')}]`;
  if (isObject(value)) {
    const entries = Object.entries(value).map(
      ([key, one]) => `${JSON.stringify(key)}: ${pythonLiteral(one)}`,
    );
    return `{${entries.join(', ')}}`;
  }
  return value === null
    ? 'None'
    : value === true
      ? 'True'
      : value === false
        ? 'False'
        : JSON.stringify(value);
}
