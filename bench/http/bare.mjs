// A function that answers requests -> a bare Node server and client around it: the cost without this library.
import http from 'node:http';

/** Head of every answer: the one that `serve()` sends. */
const HEAD = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no',
  'x-request-id': 'b5bbf0f0-7d2c-4e3b-9a52-3f6f0c1d2e4a',
};

/**
 * A pair around `answer`, which gets each request's bytes, gives what to send at once by `write`, and resolves at the end.
 * `ask(body)` resolves with the moment when the first bytes of the answer, after its head, are there.
 */
export async function barePair(answer) {
  const server = http.createServer((request, response) => {
    let missing = Number(request.headers['content-length']);
    request.on('data', async (part) => {
      missing -= part.length;
      if (missing > 0) return;
      response.writeHead(200, HEAD);
      response.flushHeaders();
      await answer((text) => response.write(text));
      response.end();
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const agent = new http.Agent({ keepAlive: true });
  const options = { hostname: '127.0.0.1', port: server.address().port, agent, method: 'POST' };
  const ask = (body) =>
    new Promise((resolve, reject) => {
      const headers = {
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      };
      const request = http.request({ ...options, path: '/v1/chat/completions', headers }, (response) => {
        let firstMs = 0;
        response.on('data', () => {
          firstMs ||= performance.now();
        });
        response.on('end', () => resolve(firstMs));
      });
      request.on('error', reject);
      request.end(body);
    });
  const close = () => {
    agent.destroy();
    server.close();
  };
  return { ask, close };
}
