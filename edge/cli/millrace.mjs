#!/usr/bin/env node
// Entry point of `npx millrace`. JavaScript, because the Node that starts it may be too old for TypeScript. Then the
// command line runs under the Node of this project.
import { spawn } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import nodeModule from 'node:module'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'

const main = new URL('main.ts', import.meta.url)
const ownNode = fileURLToPath(new URL('../../node_modules/.bin/node', import.meta.url))

if (process.features.typescript && nodeModule.registerHooks !== undefined) {
  // Node warns of type stripping and of the hooks that cache its output.
  const { emitWarning } = process
  process.emitWarning = (warning, ...rest) => {
    if (rest[0] !== 'ExperimentalWarning') emitWarning.call(process, warning, ...rest)
  }
  await import(main.href)
} else if (!existsSync(ownNode) || realpathSync(ownNode) === realpathSync(process.execPath)) {
  const folder = fileURLToPath(new URL('../../', import.meta.url))
  process.stderr.write(
    `Node ${process.version} is too old for this command. Run \`npm ci\` in ${folder}, which installs another one there.\n`,
  )
  process.exitCode = 2
} else {
  const child = spawn(ownNode, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: 'inherit',
  })
  // A terminal sends Ctrl-C to both processes. The child decides when to exit.
  process.on('SIGINT', () => {})
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  // This process ignores the signal that has ended the child, so it exits as a shell does after that signal.
  child.on('exit', (code, signal) => process.exit(signal === null ? code : 128 + constants.signals[signal]))
}
