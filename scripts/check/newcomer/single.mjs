// A single executable, as docs/packaging.md says: the program inside of Node's own binary, the library in node_modules beside it.
import fs from 'node:fs';
import path from 'node:path';
import { ROOT } from './project.mjs';

/** Makes the executable and runs it. */
export async function single(project) {
  const text = fs.readFileSync(path.join(ROOT, 'docs', 'packaging.md'), 'utf8');
  const section = text.slice(text.indexOf('## A single executable'));
  const [, program] = /```cjs\n([\s\S]*?)```/.exec(section);
  const [, config] = /```json\n([\s\S]*?)```/.exec(section);
  const [, commands] = /```sh\n([\s\S]*?)```/.exec(section);
  project.install('postject');
  project.write('app.cjs', program);
  project.write('sea-config.json', config);
  const made = await project.run('sh', ['-e', '-c', commands]);
  project.check('a single executable is made', made.code === 0, made.stdout + made.stderr);
  const { code, stdout, stderr } = await project.run(path.join(project.folder, 'app'), []);
  const holds = code === 0 && stdout === 'The capital of Peru is Lima.\n' && stderr === '';
  project.check('it answers', holds, `${code}\n${stdout}${stderr}`);
}
