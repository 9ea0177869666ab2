/** Arguments of `runTools` and `connectMcp`. */
import * as s from './schema.ts';

const LONGEST_MS = 2 ** 31 - 1;

export const toolLoopDefinitions: s.Definitions = {
  AppTool: s.shape('A function of the app that the model may call.', ['parameters', 'run'], {
    description: s.string('What it does, for the model.'),
    parameters: {
      description: 'JSON Schema of the arguments, an object. Arguments that do not fit it are not passed on.',
      type: 'object',
    },
    run: s.callback(
      'Called with the arguments. What it returns, or the error that it throws, goes to the model.',
    ),
    strict: s.boolean('Lets the model write only arguments that fit the schema.'),
    timeoutMs: s.integer('Time limit of a call, in place of `toolTimeoutMs`.', 1, { maximum: LONGEST_MS }),
  }),
  RunToolsOptions: s.options('Options of `runTools`.', ['tools'], {
    tools: {
      description: 'The tools by name.',
      type: 'object',
      additionalProperties: s.ref('AppTool'),
    },
    onCall: s.callback(
      'Called before each call, with checked arguments. False, or a text that says why, refuses it; the model is told.',
    ),
    maxSteps: s.integer('Most answers of the model. The calls of the last one are still made.', 1, {
      default: 10,
    }),
    toolTimeoutMs: s.integer('Time limit of a call. The model is told that there is no result.', 1, {
      default: 60_000,
      maximum: LONGEST_MS,
    }),
    maxResultLength: s.integer('Most characters of a result that the model gets. Longer ones are cut.', 1, {
      default: 32_768,
    }),
    signal: { description: 'Ends the answer and the running calls.', kind: 'AbortSignal' },
  }),
  McpServer: s.options('A server of the Model Context Protocol: a program, or a URL.', [], {
    command: s.string('The program. It is started, and spoken to over its standard streams.', {
      minLength: 1,
    }),
    args: s.list('Its arguments.', { type: 'string' }),
    env: {
      description: 'Its environment, in addition to what the SDK lets through.',
      type: 'object',
      additionalProperties: { type: 'string' },
    },
    cwd: s.string('Its folder.', { minLength: 1 }),
    url: s.string('The address of a server with streamable HTTP.', { minLength: 1 }),
    headers: {
      description: 'Headers of requests to that address.',
      type: 'object',
      additionalProperties: { type: 'string' },
    },
    prefix: s.string("Put before the names of the tools, to tell servers' tools apart.", { default: '' }),
    signal: { description: 'Ends the connecting.', kind: 'AbortSignal' },
  }),
};
