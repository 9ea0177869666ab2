/** Functions of an app, and tools of MCP servers -> calls of a model, made in a loop. */
export * from './mcp.ts';
export * from './run-tools.ts';
