// The command: its help, and mistakes, which end in one line and an exit code.
const MISTAKES = [
  [['complet', 'x'], 2, /did you mean complete\?/],
  [['models', '--limt', '3'], 2, /did you mean --limit\?/],
  [['complete'], 2, /expected a prompt/],
  [['complete', 'x', '--temperature', 'hot'], 2, /--temperature: expected a number/],
  [['complete', 'x', '--model', './none.gguf'], 1, /none\.gguf/],
  [['complete', 'x', '--model', 'Qwen/Qwen3-8B-GGUF'], 1, /hf:Qwen\/Qwen3-8B-GGUF/],
  [['inspect', 'app.mjs'], 1, /app\.mjs/],
  [['serve', '--port', '99999'], 2, /port/],
];

/** Runs the command as installed. */
export async function command(project) {
  project.write('app.mjs', 'not a model');
  const help = await project.command('onpolicy', '--help');
  const names = [...help.stdout.matchAll(/^ {2}([a-z]+) {2,}\S/gm)].map(([, name]) => name);
  project.check(`help names ${names.length} commands`, help.code === 0 && names.length > 10, help.stdout);
  for (const name of names.filter((name) => name !== 'help')) {
    const { code, stdout, stderr } = await project.command('onpolicy', 'help', name);
    project.check(`help ${name}`, code === 0 && stderr === '' && stdout.includes(name), stdout + stderr);
  }
  for (const [words, exitCode, message] of MISTAKES) {
    const { code, stdout, stderr } = await project.command('onpolicy', ...words);
    const isOneLine = /^onpolicy: [^\n]+\n$/.test(stderr) && stdout === '';
    const holds = code === exitCode && isOneLine && message.test(stderr);
    project.check(`mistake: ${words.join(' ')}`, holds, `${code} ${stdout}${stderr}`);
  }
}
