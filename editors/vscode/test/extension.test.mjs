// Without VS Code: how the server is found, what the manifest promises, and the server itself over its pipes.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import protocol from 'vscode-languageserver-protocol/node.js';

const here = path.dirname(new URL(import.meta.url).pathname);
const checkout = path.resolve(here, '../../..');
const { outputFiles } = await build({
  entryPoints: [path.join(here, '../src/command.ts')],
  bundle: true,
  platform: 'node',
  format: 'esm',
  write: false,
});
const module = `data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`;
const { serverCommand } = await import(module);

test('the configured command wins', () => {
  const found = serverCommand(['python', '-m', 'graphmend', 'lsp'], ['/work'], true, () => true, false);
  assert.deepEqual(found, { command: 'python', args: ['-m', 'graphmend', 'lsp'] });
});

test('the environment of a trusted workspace comes before the PATH', () => {
  const own = path.join('/second', 'venv', 'bin', 'graphmend');
  const found = (trusted) => serverCommand([], ['/first', '/second'], trusted, (file) => file === own, false).command;
  assert.equal(found(true), own);
  assert.equal(found(false), 'graphmend');
});

test('an environment on Windows has its own layout', () => {
  const found = serverCommand([], ['/work'], true, () => true, true);
  assert.equal(found.command, path.join('/work', '.venv', 'Scripts', 'graphmend.exe'));
});

test('the bundle has what the manifest names', () => {
  const manifest = JSON.parse(readFileSync(path.join(here, '../package.json'), 'utf8'));
  const bundle = readFileSync(path.join(here, '..', manifest.main), 'utf8');
  for (const { command } of manifest.contributes.commands) {
    assert.ok(bundle.includes(`"${command}"`));
  }
  assert.ok(bundle.includes('require("vscode")'));
});

test('the server sends diagnostics for an open document', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'graphmend-'));
  const file = path.join(folder, 'model.py');
  const text = 'from torch import nn\n\n\nclass M(nn.Module):\n    def forward(self, x):\n        print("here")\n        return x\n';
  writeFileSync(file, text);
  const [command, ...args] = (process.env.GRAPHMEND_LSP ?? path.join(checkout, '.venv/bin/graphmend lsp')).split(' ');
  const child = spawn(command, args, { cwd: folder });
  const connection = protocol.createProtocolConnection(child.stdout, child.stdin);
  const told = new Promise((resolve) => connection.onNotification('textDocument/publishDiagnostics', resolve));
  connection.listen();
  try {
    await connection.sendRequest('initialize', { processId: null, rootUri: null, capabilities: {} });
    await connection.sendNotification('initialized', {});
    const textDocument = { uri: pathToFileURL(file).href, languageId: 'python', version: 1, text };
    await connection.sendNotification('textDocument/didOpen', { textDocument });
    const { diagnostics } = await told;
    assert.deepEqual(diagnostics.map((each) => [each.code, each.range.start.line]), [['GM201', 5]]);
    const range = diagnostics[0].range;
    const actions = await connection.sendRequest('textDocument/codeAction', {
      textDocument: { uri: textDocument.uri },
      range,
      context: { diagnostics },
    });
    assert.ok(actions.some((each) => each.kind === 'quickfix'), JSON.stringify(actions));
    assert.ok(actions.some((each) => each.kind === 'source.fixAll.graphmend'), JSON.stringify(actions));
    const hover = await connection.sendRequest('textDocument/hover', {
      textDocument: { uri: textDocument.uri },
      position: range.start,
    });
    assert.match(JSON.stringify(hover), /GM201/);
    await connection.sendRequest('shutdown');
    await connection.sendNotification('exit');
  } finally {
    connection.dispose();
    child.kill();
  }
});
