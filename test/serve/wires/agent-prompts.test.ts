/** Two turns of coding agents, over the API of each -> prompts of published templates: all instructions are in them, and the second goes on. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { renderMessages } from '../../../src/answer/prompt.ts';
import { compileChatTemplate } from '../../../src/template/index.ts';
import { detectReasoning } from '../../../src/template/reasoning/index.ts';
import { engineSources } from '../../engine-sources.ts';
import { byteTokenizer } from '../../fakes/byte-tokenizer.ts';
import { valid } from '../../protocol/request.ts';
import { AGENTS } from './agent-turns.ts';

const sources = engineSources();
const folder = sources && path.join(sources, 'models', 'templates');
const TEMPLATES = [
  'Qwen3.5-4B',
  'openai-gpt-oss-120b',
  'google-gemma-4-31B-it',
  'MiniMax-M2',
  'GLM-4.7-Flash',
];

function promptOf(name: string, chat: object): string {
  const source = fs.readFileSync(path.join(folder!, `${name}.jinja`), 'utf8');
  const request = valid(JSON.parse(JSON.stringify(chat)) as Record<string, unknown>);
  const context = { template: compileChatTemplate(source), tokenizer: byteTokenizer };
  return renderMessages({ ...request, add_generation_prompt: true }, context);
}

describe.skipIf(folder === null)('the second turn of', () => {
  const pairs = Object.keys(AGENTS).flatMap((agent) => TEMPLATES.map((name) => [agent, name] as const));
  it.each(pairs)('%s with %s continues the first', (agent, name) => {
    const [first, second] = ([1, 2] as const).map((turn) => promptOf(name, AGENTS[agent]!(turn))) as [
      string,
      string,
    ];
    const said = (turn: 1 | 2) => JSON.stringify(AGENTS[agent]!(turn)).match(/Says\w+|Finds\w+/g)!;
    for (const [turn, prompt] of [
      [1, first],
      [2, second],
    ] as const)
      for (const mark of said(turn)) expect([mark, prompt.split(mark).length - 1]).toEqual([mark, 1]);
    // All but the opening of the answer, which holds no more than marks, is the beginning of the second prompt.
    let shared = 0;
    while (shared < first.length && first[shared] === second[shared]) shared += 1;
    expect(shared).toBeGreaterThan(first.lastIndexOf('SaysQuestion') + 'SaysQuestion'.length);
    expect(first.slice(shared).trim()).toMatch(
      /^(<think>|<\/think>|<\|channel>thought\s*<channel\|>|)[\s\S]{0,40}$/,
    );
  });

  it('templates that read reasoning know one of its formats', () => {
    for (const name of TEMPLATES)
      expect(detectReasoning(fs.readFileSync(path.join(folder!, `${name}.jinja`), 'utf8'))).not.toBeNull();
  });
});
