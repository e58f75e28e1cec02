// Starts `graphmend lsp` and lets VS Code talk to it.
import { existsSync } from 'node:fs';
import * as vscode from 'vscode';
import { LanguageClient } from 'vscode-languageclient/node';
import { serverCommand } from './command';

let client: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  context.subscriptions.push(
    vscode.commands.registerCommand('graphmend.restart', restart),
    vscode.workspace.onDidGrantWorkspaceTrust(restart),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration('graphmend.command')) {
        await restart();
      }
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await client?.stop();
  client = undefined;
}

async function restart(): Promise<void> {
  await deactivate();
  await start();
}

async function start(): Promise<void> {
  const configured = vscode.workspace.getConfiguration('graphmend').get<string[]>('command', []);
  const folders = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
  const server = serverCommand(configured, folders, vscode.workspace.isTrusted, existsSync);
  client = new LanguageClient('graphmend', 'graphmend', server, {
    documentSelector: [{ scheme: 'file', language: 'python' }],
  });
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    const told = error instanceof Error ? error.message : String(error);
    void vscode.window.showErrorMessage(
      `graphmend: cannot start \`${server.command}\` (${told}); install graphmend with its extra \`lsp\` or set graphmend.command`,
    );
  }
}
