/** A chat template or a name -> its tool-call format; a format -> its markers. */
import { OnpolicyError } from '../../errors.ts';
import type { Sign } from './format-row.ts';
import { formatRow, TOOL_FORMATS, type ToolFormat } from './formats.ts';
import { withoutComments } from './template-text.ts';

/** Returns a format by its name. An unknown name is an error that lists the known ones. */
export function toolFormat(name: string): ToolFormat {
  const known = TOOL_FORMATS.find((format) => format === name);
  if (known !== undefined) return known;
  throw new OnpolicyError(
    'INVALID_REQUEST',
    `tool format: expected one of ${TOOL_FORMATS.join(', ')}, got ${JSON.stringify(name)}`,
  );
}

/**
 * Returns the markers of a format. A special token whose text is one of these, or a part of one, must stay in the
 * parser's input, regardless of `skip_special_tokens`; the parser removes it.
 */
export function toolCallMarkers(format: ToolFormat): readonly string[] {
  return formatRow(format).reads.literals;
}

/**
 * Returns the format of models trained with this template. `json` for a template with tools in no known format; `none` for a
 * template without tools.
 */
export function detectToolFormat(template: string): ToolFormat {
  const text = withoutComments(template);
  const holds = (sign: Sign): boolean => (typeof sign === 'string' ? text.includes(sign) : sign.test(text));
  return (
    TOOL_FORMATS.find((format) => formatRow(format).seenBy.some((signs) => signs.every(holds))) ?? 'none'
  );
}
