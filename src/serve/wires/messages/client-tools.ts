/** The type of a tool that Anthropic's models know, such as `bash_20250124` -> a description and schema for models that do not know it. */
import type { JsonObject } from '../../../protocol/index.ts';

/** Description of a tool, and the schema of its input. */
export type ToolText = { readonly description: string; readonly input_schema: JsonObject };

/** Returns the tool of a type, which must be a known one. */
export function clientTool(type: string): ToolText {
  const kind = type.slice(0, -9);
  if (kind === 'bash') return BASH;
  return kind === 'memory' ? MEMORY : textEditor(type.slice(-8));
}

const text = (description: string): JsonObject => ({ type: 'string', description });
const path = text('Absolute path of a file or folder.');

/** Properties of the commands that the editor and memory tools share. */
const EDITS = {
  path,
  view_range: {
    type: 'array',
    items: { type: 'integer' },
    minItems: 2,
    maxItems: 2,
    description: 'For view: first and last line, from 1; -1 is the end of the file. Absent: all lines.',
  },
  file_text: text('For create: the text of the file.'),
  old_str: text('For str_replace: the text to replace. It must occur once, exactly so.'),
  insert_line: {
    type: 'integer',
    description: 'For insert: the line after which to insert; 0 is the begin.',
  },
};

const BASH: ToolText = {
  description: 'Runs commands in a bash session that keeps its state from call to call.',
  input_schema: {
    type: 'object',
    properties: {
      command: text('The command to run. Required unless the session is restarted.'),
      restart: { type: 'boolean', description: 'True restarts the session.' },
    },
  },
};

const MEMORY: ToolText = {
  description:
    'Keeps notes in files under /memories that later conversations can read. View the folder before a task.',
  input_schema: {
    type: 'object',
    properties: {
      command: { type: 'string', enum: ['view', 'create', 'str_replace', 'insert', 'delete', 'rename'] },
      ...EDITS,
      new_str: text('For str_replace: the text that replaces it.'),
      insert_text: text('For insert: the text to insert.'),
      old_path: text('For rename: the present path.'),
      new_path: text('For rename: the new path.'),
    },
    required: ['command'],
  },
};

/** Returns the text editor of a version. Until 2025-04 it had `undo_edit` and inserted `new_str`. */
function textEditor(version: string): ToolText {
  const isOld = version < '20250429';
  const commands = ['view', 'create', 'str_replace', 'insert', ...(isOld ? ['undo_edit'] : [])];
  return {
    description: 'Views, creates and edits text files.',
    input_schema: {
      type: 'object',
      properties: {
        command: { type: 'string', enum: commands },
        ...EDITS,
        new_str: text(
          `For str_replace: the text that replaces it.${isOld ? ' For insert: the text to insert.' : ''}`,
        ),
        ...(isOld ? {} : { insert_text: text('For insert: the text to insert.') }),
      },
      required: ['command', 'path'],
    },
  };
}
