// How the language server is started. Nothing here knows VS Code, so that it can be tested without it.
import * as path from 'node:path';

export interface Command {
  command: string;
  args: string[];
}

/**
 * The command of the settings, else that of a virtual environment in a folder of the workspace, else the one on PATH.
 * An environment is used in a trusted workspace alone: it is code of the workspace, as the configured command may be.
 */
export function serverCommand(
  configured: readonly string[],
  folders: readonly string[],
  trusted: boolean,
  exists: (file: string) => boolean,
  windows: boolean = process.platform === 'win32',
): Command {
  if (configured.length > 0 && configured[0]) {
    return { command: configured[0], args: configured.slice(1) };
  }
  const program = windows ? ['Scripts', 'graphmend.exe'] : ['bin', 'graphmend'];
  const own = folders.flatMap((folder) => ['.venv', 'venv'].map((name) => path.join(folder, name, ...program)));
  const found = trusted ? own.find(exists) : undefined;
  return { command: found ?? 'graphmend', args: ['lsp'] };
}
