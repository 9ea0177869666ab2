/** The texts of one family of tool calls. */
import type { ToolFormat } from '../../../src/template/tool-calls/index.ts';

export type FamilyRow = {
  readonly format: ToolFormat;
  /** get_weather(WEATHER). */
  readonly one: string;
  /** get_weather(WEATHER), then get_time(TIME). */
  readonly two: string;
  /** A call that goes wrong, in a text that stays as it is. */
  readonly malformed: string;
  /** The text up to which nothing of `one` may be reported as a call: where the name ends. */
  readonly nameEnd: string;
  /** White space or a line break has to stand before a call that follows text. */
  readonly textBefore?: string;
};
