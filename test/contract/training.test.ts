/** The contract of training, on a service in memory, a client of it over a socket, and a pool of both. */
import { connect, createPool, serve } from '../../src/serve/http/index.ts';
import { createMemoryService } from '../fakes/memory-service.ts';
import { trainingContract } from './training-contract.ts';

const SLOW = { stepMs: 30 };

trainingContract('the service in memory', async () => {
  const service = createMemoryService(SLOW);
  return { service, close: () => service.close() };
});

trainingContract('a client', async () => {
  const server = await serve(createMemoryService(SLOW), { tokens: ['secret'] });
  const service = connect({ baseUrl: server.url, apiKey: 'secret', pollMs: 5 });
  return { service, close: () => service.close().then(() => server.close()) };
});

trainingContract('a pool', async () => {
  const server = await serve(createMemoryService(SLOW), { tokens: ['secret'] });
  const client = connect({ baseUrl: server.url, apiKey: 'secret', pollMs: 5 });
  const service = createPool([createMemoryService(), client], { trainer: 1 });
  return { service, close: () => service.close().then(() => server.close()) };
});
