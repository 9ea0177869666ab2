/** Rows over services of every kind -> each row once, whoever answers, and whoever ends meanwhile. */
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connect, createPool, type Server, serve } from '../../../src/serve/http/index.ts';
import { createMemoryService, type MemoryService } from '../../fakes/memory-service.ts';
import { lineOf, newFolder, readRows, writeLines } from './fake-rows.ts';

const answersOf = (member: MemoryService): number =>
  member.calls.filter((call) => call === 'createCompletion').length;

/** A machine: a service behind a server. */
async function machine(): Promise<{ service: MemoryService; server: Server; kill: () => Promise<void> }> {
  const service = createMemoryService({ pieceMs: 1 });
  const server = await serve(service, { graceMs: 0 });
  const kill = async (): Promise<void> => {
    await Promise.all([server.close(), service.close()]);
  };
  onTestFinished(kill);
  return { service, server, kill };
}

const connected = ({ server }: { server: Server }) => connect({ baseUrl: server.url, maxRetries: 0 });

describe('rows', () => {
  it('over a server have the answers of the server', async () => {
    const one = await machine();
    const output = path.join(newFolder(), 'out.jsonl');
    const lines = ['a', 'b', 'c'].map((id) => lineOf(id, `say ${id}`));
    expect(await connected(one).batch(lines, { output }).done).toMatchObject({ completed: 3 });
    expect(readRows(output).map(({ response }) => (response!.body as { id: string }).id)).toEqual(
      readRows(output).map(({ id }) => `chatcmpl-${id}`),
    );
  });

  it('over a pool of three are each answered once, though one is killed and one added', async () => {
    const machines = await Promise.all([machine(), machine(), machine()]);
    const pool = createPool(machines.map(connected), { retryMs: 20 });
    const added = await machine();
    const folder = newFolder();
    const lines = Array.from({ length: 1500 }, (_, i) => ({
      custom_id: `id-${i}`,
      body: {
        messages: [
          { role: 'system', content: `prefix ${i % 12}` },
          { role: 'user', content: `say ${i}` },
        ],
      },
    })).map((line) => JSON.stringify(line));
    const output = path.join(folder, 'out.jsonl');
    const run = pool.batch(writeLines(folder, lines), { output, concurrency: 24 }).done;
    while (answersOf(machines[1]!.service) < 100) await sleep(2);
    await machines[1]!.kill();
    pool.add(connected(added));
    expect(await run).toMatchObject({ rows: 1500, completed: 1500, failed: 0 });
    const rows = readRows(output);
    expect(new Set(rows.map((row) => row.custom_id)).size).toBe(1500);
    expect(rows.length).toBe(1500);
    expect(answersOf(added.service)).toBeGreaterThan(100);
    await pool.close();
  }, 60_000);

  it('of one beginning stay with one member', async () => {
    const members = [1, 2, 3].map(() => createMemoryService());
    const prefixes = members.map(() => new Set<string>());
    members.forEach((member, i) => {
      const ask = member.createCompletion.bind(member) as (...args: unknown[]) => unknown;
      member.createCompletion = ((request: { messages: { content: string }[] }, options: unknown) => {
        prefixes[i]!.add(request.messages[0]!.content);
        return ask(request, options);
      }) as never;
    });
    const rows = Array.from({ length: 600 }, (_, i) => ({
      messages: [
        { role: 'system', content: `prefix ${i % 20}` },
        { role: 'user', content: `say ${i}` },
      ],
    }));
    await createPool(members).batch(rows, { concurrency: 8 }).done;
    // each member meets its share, not all of them
    expect(prefixes.reduce((sum, met) => sum + met.size, 0)).toBeLessThan(32);
  });
});
