/** The tools of a request -> words that describe them, for a template that shows no tools. */
import type { FunctionTool } from '../protocol/index.ts';
import { callsText, type ToolFormat } from '../template/tool-calls/index.ts';

export function toolInstructions(tools: readonly FunctionTool[], format: ToolFormat): string {
  const functions = tools.map(({ function: { name, description, parameters } }) =>
    JSON.stringify({ name, ...(description ? { description } : {}), ...(parameters ? { parameters } : {}) }),
  );
  const example = callsText(format, [{ name: 'NAME', arguments: '{"KEY": "VALUE"}' }]);
  return [
    'You can call functions. Each line is one of them, with the JSON Schema of its arguments:',
    ...functions,
    'To call a function, answer with a line of this form and no other text:',
    example,
    'Answer with text where no function is needed.',
  ].join('\n');
}
