// Coding agents and one SDK -> how each is installed, configured for a server and asked. Nothing of them is changed.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { MODEL } from './scripted-service.mjs';

/** The provider of the configuration files. */
const PROVIDER = 'local';

/** `configure` writes into `home`; `words` asks, in the last conversation if `resumes`; `call` runs a shell command. */
export const CLIENTS = [
  {
    id: 'claude',
    name: 'Claude Code',
    packages: ['@anthropic-ai/claude-code'],
    env: ({ url, key }) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: key }),
    words: (prompt, { resumes }) => [
      'claude',
      ...(resumes ? ['--continue'] : []),
      ...['-p', prompt, '--model', MODEL, '--allowedTools', 'Bash'],
    ],
    call: (command) => ({ name: 'Bash', arguments: { command, description: 'Runs it' } }),
  },
  {
    id: 'codex',
    name: 'Codex',
    packages: ['@openai/codex'],
    configure: ({ url }, home) =>
      write(
        home,
        '.codex/config.toml',
        [
          `model = "${MODEL}"`,
          `model_provider = "${PROVIDER}"`,
          `[model_providers.${PROVIDER}]`,
          `name = "${PROVIDER}"`,
          `base_url = "${url}/v1"`,
          'env_key = "LOCAL_API_KEY"',
        ].join('\n'),
      ),
    env: ({ key }) => ({ LOCAL_API_KEY: key }),
    words: (prompt, { resumes, contextSize }) => [
      ...['codex', 'exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'],
      ...(contextSize ? ['-c', `model_context_window=${contextSize}`] : []),
      ...(resumes ? ['resume', '--last'] : []),
      prompt,
    ],
    call: (cmd) => ({ name: 'exec_command', arguments: { cmd } }),
  },
  {
    id: 'opencode',
    name: 'opencode',
    packages: ['opencode-ai'],
    configure: ({ url, key }, home) =>
      write(
        home,
        '.config/opencode/opencode.json',
        JSON.stringify({
          model: `${PROVIDER}/${MODEL}`,
          provider: {
            [PROVIDER]: {
              npm: '@ai-sdk/openai-compatible',
              options: { baseURL: `${url}/v1`, apiKey: key },
              models: { [MODEL]: { limit: { context: 100_000, output: 4000 } } },
            },
          },
        }),
      ),
    words: (prompt, { resumes }) => ['opencode', 'run', ...(resumes ? ['--continue'] : []), prompt],
    call: (command) => ({ name: 'bash', arguments: { command, description: 'Runs it' } }),
  },
  {
    id: 'qwen',
    name: 'Qwen Code',
    packages: ['@qwen-code/qwen-code'],
    env: ({ url, key }) => ({ OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: key, OPENAI_MODEL: MODEL }),
    words: (prompt, { resumes }) => [
      ...['qwen', '--auth-type', 'openai', '--yolo'],
      ...(resumes ? ['--continue'] : []),
      ...['-p', prompt],
    ],
    call: (command) => ({
      name: 'run_shell_command',
      arguments: { command, description: 'Runs it', is_background: false },
    }),
  },
  {
    id: 'pi',
    name: 'pi',
    packages: ['@mariozechner/pi-coding-agent'],
    configure: ({ url, key }, home) =>
      write(
        home,
        '.pi/agent/models.json',
        JSON.stringify({
          providers: {
            [PROVIDER]: {
              baseUrl: `${url}/v1`,
              api: 'openai-completions',
              apiKey: key,
              models: [{ id: MODEL, contextWindow: 100_000, maxTokens: 4000 }],
            },
          },
        }),
      ),
    words: (prompt, { resumes }) => [
      ...['pi', '--provider', PROVIDER, '--model', MODEL],
      ...(resumes ? ['--continue'] : []),
      ...['-p', prompt],
    ],
    call: (command) => ({ name: 'bash', arguments: { command } }),
  },
  {
    id: 'ai',
    name: "AI SDK's default provider",
    packages: ['ai', '@ai-sdk/openai', 'zod'],
    configure: (_, home) => {
      const program = new URL('ai-sdk-agent.mjs', import.meta.url);
      fs.copyFileSync(fileURLToPath(program), path.join(home, '..', 'ai-sdk-agent.mjs')); // it finds its packages there
    },
    env: ({ url, key }) => ({ OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: key }),
    words: (prompt, { resumes, home }) => [
      process.execPath,
      path.join(home, '..', 'ai-sdk-agent.mjs'),
      ...[MODEL, prompt, ...(resumes ? ['resume'] : [])],
    ],
    call: (command) => ({ name: 'run', arguments: { command } }),
  },
];

function write(folder, name, text) {
  const file = path.join(folder, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, text);
}
