// `onpolicy init`: each template in an empty folder, installed by npm, checked by TypeScript, and the script and the server run.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { freePort } from './project.mjs';

/** Electron's types come with its package. Its binary is not started here. */
const env = { ELECTRON_SKIP_BINARY_DOWNLOAD: '1' };

export async function init(project) {
  for (const template of ['script', 'server', 'electron']) {
    const npm = async (claim, ...words) => {
      const { code, stdout, stderr } = await project.run('npm', ['--prefix', template, ...words], { env });
      project.check(claim, code === 0, stdout + stderr);
      return stdout;
    };
    const { code, stdout, stderr } = await project.command(
      'onpolicy',
      'init',
      template,
      '--template',
      template,
    );
    const next = `  cd ${template}\n  npm install\n  npm start\n`;
    project.check(`init ${template}`, code === 0 && stdout.endsWith(next), stdout + stderr);
    await npm(`install ${template}`, 'install', '--prefer-offline', '--no-audit', '--no-fund');
    await npm(`${template} is strict TypeScript`, 'run', 'check');
  }
  const script = await project.run('npm', ['--prefix', 'script', 'start']);
  const isAnswer = script.stdout.endsWith('\nOmar is 26 and lives in Delhi.\n');
  project.check('the script answers', script.code === 0 && isAnswer, script.stdout + script.stderr);
  await project.run('npx', ['--prefix', 'server', 'tsc', '-p', 'server']);
  await server(project);
  const again = await project.command('onpolicy', 'init', 'script', '--template', 'server');
  const isRefused = again.code === 2 && again.stderr.includes('package.json, tsconfig.json, src/main.ts');
  project.check('files are not replaced', isRefused, again.stderr);
}

/** Starts the server, asks for its page and an answer, and ends it. */
async function server(project) {
  const child = spawn(process.execPath, [path.join('server', 'dist', 'main.js')], {
    cwd: project.folder,
    env: { ...process.env, PORT: String(await freePort()) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const [line] = await once(child.stdout.setEncoding('utf8'), 'data');
  const [url] = line.match(/http:\S+/);
  const page = await fetch(url, { headers: { accept: 'text/html' } });
  project.check('the server has a chat page', (await page.text()).includes('<main id="chat">'));
  const messages = [{ role: 'user', content: 'What is the capital of Peru?' }];
  const body = JSON.stringify({ messages, temperature: 0 });
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body });
  const text = await answer.text();
  project.check('the server answers', text.includes('The capital of Peru is Lima.'), text);
  child.kill('SIGTERM');
  const [code] = await ended;
  project.check('the server ends by a signal', code === 0, String(code));
}
