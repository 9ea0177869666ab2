/** A server of the Model Context Protocol -> its tools as functions of the app. Its official SDK is an optional package. */
import { errorAt, messageOf, OnpolicyError } from '../../errors.ts';
import { type Arguments, checkArguments } from '../../protocol/index.ts';
import type { AppTool } from './run-tools.ts';

/** A part of a result of an MCP tool. */
type McpPart = {
  readonly type: string;
  readonly text?: string;
  readonly mimeType?: string;
  readonly uri?: string;
  readonly resource?: { readonly uri?: string; readonly text?: string; readonly mimeType?: string };
};

/** The part of a `Client` of `@modelcontextprotocol/sdk` that is used. */
export interface McpClient {
  /** Lists the tools of the server, a page at a time. */
  listTools(
    params?: { readonly cursor?: string },
    options?: { readonly signal?: AbortSignal },
  ): Promise<{
    readonly tools: readonly {
      readonly name: string;
      readonly description?: string;
      readonly inputSchema: object;
    }[];
    readonly nextCursor?: string | undefined;
  }>;
  /** Calls a tool of the server. */
  callTool(
    params: { readonly name: string; readonly arguments?: Record<string, unknown> },
    resultSchema?: undefined,
    options?: { readonly signal?: AbortSignal; readonly timeout?: number },
  ): Promise<unknown>;
}

/** Longest time limit of a call at the client. Those of `runTools` apply. */
const LONGEST_MS = 2 ** 31 - 1;

/** Options of {@link connectMcp}. */
export type McpServer = Arguments['McpServer'];

/** Tools of a connected server. */
export type McpConnection = AsyncDisposable & {
  /** For the `tools` of `runTools`. */
  readonly tools: Readonly<Record<string, AppTool>>;
  /** Ends the connection, and the program if one was started. */
  close(): Promise<void>;
};

/**
 * Starts a program or connects to a URL, and returns its tools. Needs the package `@modelcontextprotocol/sdk`.
 * @throws OnpolicyError `NATIVE_UNAVAILABLE` if the package is not installed, `INVALID_REQUEST` for wrong options, `NETWORK_FAILED` if the server
 * does not answer
 */
export async function connectMcp(server: McpServer): Promise<McpConnection> {
  checkArguments('McpServer', server);
  const { command, url, prefix, signal } = server;
  if ((command === undefined) === (url === undefined))
    throw errorAt('command', 'INVALID_REQUEST', 'expected either a command or a url');
  const { Client } = await sdk<{ Client: new (info: object) => SdkClient }>('client/index.js');
  const client = new Client({ name: 'onpolicy', version: '1' });
  try {
    await client.connect(await transportOf(server), signal ? { signal } : {});
    const tools = await mcpTools(client, prefix === undefined ? {} : { prefix });
    const close = (): Promise<void> => client.close();
    return { tools, close, [Symbol.asyncDispose]: close };
  } catch (error) {
    await client.close().catch(() => {});
    if (error instanceof OnpolicyError) throw error;
    const what = url ?? command;
    throw new OnpolicyError('NETWORK_FAILED', `the MCP server ${what} does not answer: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/** Returns the tools of a client that the app has connected itself. `prefix` is put before their names. */
export async function mcpTools(
  client: McpClient,
  { prefix = '' }: { readonly prefix?: string } = {},
): Promise<Record<string, AppTool>> {
  const tools: Record<string, AppTool> = {};
  let cursor: string | undefined;
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor });
    for (const { name, description, inputSchema } of page.tools)
      tools[`${prefix}${name}`] = {
        ...(description === undefined ? {} : { description }),
        parameters: inputSchema as Readonly<Record<string, unknown>>,
        run: async (args: Record<string, unknown>, { signal }) =>
          textOf(
            await client.callTool({ name, arguments: args }, undefined, { signal, timeout: LONGEST_MS }),
          ),
      };
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return tools;
}

type SdkClient = McpClient & {
  connect(transport: object, options: { readonly signal?: AbortSignal }): Promise<void>;
  close(): Promise<void>;
};

async function transportOf({ command, args, env, cwd, url, headers }: McpServer): Promise<object> {
  if (url !== undefined) {
    const { StreamableHTTPClientTransport } = await sdk<{
      StreamableHTTPClientTransport: new (url: URL, options: object) => object;
    }>('client/streamableHttp.js');
    return new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: headers ?? {} } });
  }
  const { StdioClientTransport, getDefaultEnvironment } = await sdk<{
    StdioClientTransport: new (options: object) => object;
    getDefaultEnvironment: () => Record<string, string>;
  }>('client/stdio.js');
  const environment = { ...getDefaultEnvironment(), ...env };
  return new StdioClientTransport({
    command,
    args: args ?? [],
    env: environment,
    stderr: 'ignore',
    ...(cwd ? { cwd } : {}),
  });
}

/** Loads a module of the SDK. */
async function sdk<Module>(file: string): Promise<Module> {
  const name = '@modelcontextprotocol/sdk';
  try {
    return (await import(`${name}/${file}`)) as Module;
  } catch (cause) {
    throw new OnpolicyError(
      'NATIVE_UNAVAILABLE',
      `MCP needs the package ${name}, which is not installed or does not load; npm install ${name}`,
      { cause },
    );
  }
}

/** Returns the text of a result. Parts that are no text are named. Throws if the tool reports an error. */
function textOf(result: unknown): string {
  const {
    content = [],
    structuredContent,
    isError,
  } = result as {
    readonly content?: readonly McpPart[];
    readonly structuredContent?: unknown;
    readonly isError?: boolean;
  };
  const parts = content.map(({ type, text, mimeType, uri, resource }) => {
    if (type === 'text') return text ?? '';
    if (resource?.text !== undefined) return resource.text;
    return `[${type}${mimeType ? ` ${mimeType}` : ''}${(uri ?? resource?.uri) ? ` ${uri ?? resource?.uri}` : ''}]`;
  });
  const whole =
    parts.length > 0 || structuredContent === undefined
      ? parts.join('\n')
      : JSON.stringify(structuredContent);
  if (isError) throw new Error(whole);
  return whole;
}
