/** An MCP server of the protocol's authors, driven by the embedded model, whose calls are forced. */
import fs from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { connectMcp, mcpTools, runTools, type ToolLoopEvent } from '../../../src/serve/tools/index.ts';
import { openRuntime } from '../../answer/asking.ts';

const { runtime } = openRuntime();
const packages = path.resolve(import.meta.dirname, '../../../node_modules/@modelcontextprotocol');
const EVERYTHING = {
  command: process.execPath,
  args: [path.join(packages, 'server-everything/dist/index.js'), 'stdio'],
};
const isInstalled = fs.existsSync(EVERYTHING.args[0]!);
if (!isInstalled) process.stderr.write('tests of MCP skipped: its packages are not installed (npm ci)\n');

/** The SDK as far as the tests use it: an optional package, so that types do not depend on it. */
type Sdk = {
  Client: new (
    info: object,
  ) => Parameters<typeof mcpTools>[0] & {
    connect(transport: object): Promise<void>;
    close(): Promise<void>;
  };
  McpServer: new (
    info: object,
  ) => {
    connect(transport: object): Promise<void>;
    registerTool(name: string, config: object, run: (args: { n: number }) => Promise<object>): void;
  };
  InMemoryTransport: { createLinkedPair(): readonly [object, object] };
  StreamableHTTPServerTransport: new (
    options: object,
  ) => { handleRequest(request: object, response: object): Promise<void> };
};
async function sdk(): Promise<Sdk> {
  const files = ['client/index.js', 'inMemory.js', 'server/mcp.js', 'server/streamableHttp.js'];
  const parts = await Promise.all(files.map((file) => import(`@modelcontextprotocol/sdk/${file}`)));
  return Object.assign({}, ...parts) as Sdk;
}
const messages = [{ role: 'user' as const, content: 'Add 12 and 34.' }];

/** A schema with only these values, so that the call of a small model is forced to the last character. */
const only = (values: Readonly<Record<string, number>>) => ({
  type: 'object',
  properties: Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { const: value }])),
  required: Object.keys(values),
  additionalProperties: false,
});

/** Tools that throw, never end, and answer with any number of letters. */
function registerTools(server: InstanceType<Sdk['McpServer']>): void {
  server.registerTool('fails', { inputSchema: {} }, async () => ({
    isError: true,
    content: [{ type: 'text', text: 'no such file' }],
  }));
  server.registerTool('throws', { inputSchema: {} }, async () => {
    throw new Error('the disk is gone');
  });
  server.registerTool('hangs', { inputSchema: {} }, async () => await new Promise(() => {}));
  server.registerTool('large', { inputSchema: { n: z.number() } }, async ({ n }) => ({
    content: [{ type: 'text', text: 'x'.repeat(n) }],
  }));
}

/** A request that must call this tool. */
const calling = (name: string) => ({
  messages,
  temperature: 0,
  max_tokens: 60,
  tool_choice: { type: 'function' as const, function: { name } },
});

describe.runIf(isInstalled)('tools of an MCP server', () => {
  it('are called over the streams of a program, and their results are told to the model', async () => {
    await using server = await connectMcp({ ...EVERYTHING, prefix: 'mcp_' });
    expect(Object.keys(server.tools)).toEqual(expect.arrayContaining(['mcp_echo', 'mcp_get-sum']));
    const { 'mcp_get-sum': sum } = server.tools;
    const tools = { sum: { ...sum!, parameters: only({ a: 12, b: 34 }) } };
    const events: ToolLoopEvent[] = [];
    const run = runTools(runtime(), calling('sum'), { tools, maxSteps: 2 });
    for await (const event of run) events.push(event);
    const call = events.find((event) => event.type === 'call')!.call;
    const result = events.find((event) => event.type === 'result')!;
    expect(result).toMatchObject({ isError: false, callId: call.id });
    expect(result.content).toContain('46');
    const { messages: told } = await run.result();
    expect(told.slice(0, 3).map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
    expect(told[2]).toMatchObject({ tool_call_id: call.id, content: result.content });
  });

  it('are called at a client that the app has connected: throwing, hanging, large', async () => {
    const { Client, InMemoryTransport, McpServer } = await sdk();
    const server = new McpServer({ name: 'test', version: '1' });
    registerTools(server);
    const [here, there] = InMemoryTransport.createLinkedPair();
    const client = new Client({ name: 'app', version: '1' });
    await Promise.all([server.connect(there), client.connect(here)]);
    const tools = await mcpTools(client);
    const context = { signal: new AbortController().signal, callId: '' };
    await expect(tools['fails']!.run({}, context)).rejects.toThrow('no such file');
    expect(await tools['large']!.run({ n: 10_000_000 }, context)).toHaveLength(10_000_000);
    for (const name of ['fails', 'hangs']) tools[name] = { ...tools[name]!, parameters: only({}) };
    const told = async (name: string): Promise<unknown> => {
      const options = { tools: { [name]: tools[name]! }, maxSteps: 1, toolTimeoutMs: 100 };
      const { messages: all } = await runTools(runtime(), calling(name), options).result();
      return all.at(-1)!.content;
    };
    expect(await told('fails')).toBe('error: no such file');
    expect(await told('hangs')).toBe('error: no result within 100 ms');
    const abort = new AbortController();
    const running = runTools(runtime(), calling('hangs'), { tools, signal: abort.signal });
    const reading = (async () => {
      for await (const { type } of running) if (type === 'call') setTimeout(() => abort.abort(), 20);
    })();
    await expect(reading).rejects.toMatchObject({ code: 'ABORTED' });
    await client.close();
  });

  it('are called at a URL: throwing, hanging, large, aborted', async () => {
    const { McpServer, StreamableHTTPServerTransport } = await sdk();
    const seen: (string | undefined)[] = [];
    // A server without sessions has a transport for each request, as the SDK's example.
    const http = createServer(async (request, response) => {
      seen.push(request.headers.authorization);
      const server = new McpServer({ name: 'test', version: '1' });
      registerTools(server);
      const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
      await server.connect(transport);
      await transport.handleRequest(request, response);
    });
    await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`;
    const server = await connectMcp({ url, headers: { authorization: 'Bearer mine' }, prefix: 'far_' });
    try {
      const { tools: found } = server;
      expect(Object.keys(found)).toEqual(['far_fails', 'far_throws', 'far_hangs', 'far_large']);
      expect(new Set(seen)).toEqual(new Set(['Bearer mine']));
      const context = { signal: new AbortController().signal, callId: '' };
      expect(await found['far_large']!.run({ n: 10_000_000 }, context)).toHaveLength(10_000_000);
      const named = (name: string, parameters = only({})) => ({ [name]: { ...found[name]!, parameters } });
      const told = async (name: string, parameters = only({})): Promise<unknown> => {
        const options = { tools: named(name, parameters), maxSteps: 1, toolTimeoutMs: 2000 };
        return (await runTools(runtime(), calling(name), options).result()).messages.at(-1)!.content;
      };
      expect(await told('far_fails')).toBe('error: no such file');
      expect(await told('far_throws')).toBe('error: the disk is gone');
      expect(await told('far_large', only({ n: 9 }))).toBe('xxxxxxxxx');
      const hangs = { tools: named('far_hangs'), maxSteps: 1, toolTimeoutMs: 100 };
      const { messages: all } = await runTools(runtime(), calling('far_hangs'), hangs).result();
      expect(all.at(-1)!.content).toBe('error: no result within 100 ms');
      const abort = new AbortController();
      const running = runTools(runtime(), calling('far_hangs'), {
        tools: named('far_hangs'),
        signal: abort.signal,
      });
      const reading = (async () => {
        for await (const { type } of running) if (type === 'call') setTimeout(() => abort.abort(), 20);
      })();
      await expect(reading).rejects.toMatchObject({ code: 'ABORTED' });
    } finally {
      await server.close();
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    }
    await expect(connectMcp({ url })).rejects.toMatchObject({
      code: 'NETWORK_FAILED',
      message: expect.stringContaining(url),
    });
  });

  it('are refused with a reason where there is no server', async () => {
    const none = { command: process.execPath, args: ['-e', ''] };
    await expect(connectMcp(none)).rejects.toMatchObject({ code: 'NETWORK_FAILED' });
    await expect(connectMcp({})).rejects.toThrow('command: expected either a command or a url');
    await expect(connectMcp({ ...none, url: 'http://x' })).rejects.toThrow('expected either');
    await expect(connectMcp({ command: '' })).rejects.toThrow('command');
  });
});
