/** A chat page for browsers, and a server for clients of OpenAI's API, on this machine. Ctrl+C ends it. */
import { once } from 'node:events';
import { createRuntime, serve } from 'onpolicy';

// The embedded model answers. A larger one: createRuntime({ model: 'hf:Qwen/Qwen3-4B-GGUF:Q4_K_M' })
const runtime = await createRuntime();

// Other machines reach it with { host: '0.0.0.0', tokens: ['a secret of yours'] }.
const server = await serve(runtime, { port: Number(process.env['PORT'] ?? 8080), page: true });
console.log(`The chat page: ${server.url}`);
console.log(`The base URL of clients: ${server.url}/v1`);

await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
await server.close();
await runtime.close();
