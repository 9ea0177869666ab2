/** The cases of llama.cpp's test-chat: a template, messages, tools, the text of a model, and the message that the caller gets. */
import fs from 'node:fs';
import path from 'node:path';
import { engineSources } from '../engine-sources.ts';

export type PeerCall = { readonly name: string; readonly arguments: string };
type Message = { readonly role: string; readonly content: string; readonly reasoning: string };

/** One case. */
export type PeerRow = {
  /** The template and the line in the source of the test. */
  readonly title: string;
  readonly line: number;
  readonly template: string;
  /** The text of the model. */
  readonly input: string;
  readonly partial: boolean;
  readonly enable_thinking: boolean;
  /** Above 0: the last message is continued. */
  readonly continue: number;
  readonly tools: readonly { name: string; description: string; parameters: string }[];
  readonly messages: readonly Message[];
  readonly expect: {
    readonly content: string;
    readonly reasoning: string;
    readonly calls: readonly PeerCall[];
  };
};

const FAILS = ['fireworks-ai-llama-3-firefunction-v2.jinja:5073', 'llama-cpp-deepseek-r1.jinja:5139'];

const file = path.resolve(import.meta.dirname, '..', '..', '..', 'shared', 'data', 'peers', 'chat.jsonl');
const sources = engineSources();

/** True if the files with the cases and the templates exist. */
export const hasPeerData = fs.existsSync(file) && sources !== null;
if (!hasPeerData) process.stderr.write(`skipped: ${file} or the sources of the engine are not there\n`);

/** All cases. Empty if there is no data. */
export const PEER_ROWS: readonly PeerRow[] = hasPeerData
  ? fs
      .readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as PeerRow)
      .map((row) => ({ ...row, title: `${row.template.slice('models/templates/'.length)}:${row.line}` }))
  : [];

export function templateOf(row: PeerRow): string {
  return fs.readFileSync(path.join(sources!, row.template), 'utf8');
}

/** The tools as a request has them. */
export function toolsOf(row: PeerRow) {
  return row.tools.map(({ name, description, parameters }) => ({
    type: 'function' as const,
    function: { name, description, parameters: JSON.parse(parameters) as Record<string, unknown> },
  }));
}

/** JSON in one form; a text that is cut, without its white space. */
export function normalJson(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json));
  } catch {
    return json.replaceAll(/\s/g, '');
  }
}

/** The message of a case in the form that tests compare. */
export function wantedOf({ expect: { content, reasoning, calls } }: PeerRow) {
  return {
    content: content.trim(),
    reasoning: reasoning.trim(),
    calls: calls.map((call) => ({ name: call.name, arguments: normalJson(call.arguments) })),
  };
}

/** Returns true if the template also fails with these messages and tools in transformers. */
export function failsToRender({ title }: PeerRow): boolean {
  return FAILS.includes(title);
}
