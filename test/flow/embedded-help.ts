import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { connect } from '../../sql/connections/driver.ts'
import {
  type EmbeddedDatabase,
  type EmbeddedOptions,
  startEmbedded,
} from '../../sql/server/embedded/embedded.ts'

export const CHILD_SCRIPT = path.join(import.meta.dirname, 'embedded-child.ts')

const closersByTest = new WeakMap<TestContext, (() => unknown)[]>()

/** Runs `close` after the test. Functions run in reverse order, unlike the runner's own hooks. */
function closeAfter(t: TestContext, close: () => unknown): void {
  const known = closersByTest.get(t)
  if (known) return void known.push(close)
  const list = [close]
  closersByTest.set(t, list)
  t.after(async () => {
    for (const one of list.reverse()) await one()
  })
}

/**
 * Creates a folder that other users may enter, because root starts the server as another user. Removes it after the
 * test.
 */
export function createFolder(t: TestContext): string {
  const made = realpathSync(mkdtempSync(path.join(tmpdir(), 'millrace-')))
  chmodSync(made, 0o755)
  closeAfter(t, () => rmSync(made, { recursive: true, force: true }))
  return made
}

let kept: Promise<string> | undefined

/** Copies a folder with a stopped database, because a first start takes 0.4 s of CPU. */
export async function copyUsedFolder(t: TestContext): Promise<string> {
  kept ??= createUsedFolder()
  const made = createFolder(t)
  execFileSync('cp', ['-a', `${await kept}/.`, made])
  return made
}

/** Creates a folder with a stopped database. Later test files reuse it, so only the test run removes it. */
async function createUsedFolder(): Promise<string> {
  const dataDir = mkdtempSync(path.join(tmpdir(), 'millrace-'))
  chmodSync(dataDir, 0o755)
  await (await startEmbedded({ dataDir, ephemeral: true })).stop()
  return dataDir
}

/** Starts an embedded database and stops it after the test at the latest. */
export async function startDatabase(
  t: TestContext,
  dataDir: string,
  options: Partial<EmbeddedOptions> = {},
): Promise<EmbeddedDatabase> {
  const database = await startEmbedded({ dataDir, ephemeral: true, ...options })
  closeAfter(t, () => database.stop())
  return database
}

/** Runs one statement on a new connection and returns its rows. */
export async function queryRows(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = await connect({ url, applicationName: 'test' })
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

export interface OwnerProcess {
  readonly child: ChildProcess
  readonly url: string
  readonly error: string
  readonly lines: readonly string[]
}

/** Starts the database of `dataDir` in a new process, and kills the process after the test at the latest. */
export async function startInChild(
  t: TestContext,
  dataDir: string,
  options: { node?: string; script?: string; env?: Record<string, string>; uid?: number; gid?: number } = {},
): Promise<OwnerProcess> {
  const { node = process.execPath, script = CHILD_SCRIPT, env = {}, ...account } = options
  const child = spawn(node, ['--disable-warning=ExperimentalWarning', script, dataDir], {
    cwd: '/',
    env: { PATH: process.env.PATH ?? '', TMPDIR: tmpdir(), ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
    ...account,
  })
  closeAfter(t, () => child.kill('SIGKILL'))
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  return { child, url: '', error: '', ...JSON.parse(line) }
}

/** Stops a process of {@link startInChild} gracefully. */
export async function stopChild({ child }: OwnerProcess): Promise<void> {
  child.stdin?.end()
  await once(child, 'exit')
}

export async function killChild(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL')
  await once(child, 'exit')
}

export function readPostmasterPid(dataDir: string): number {
  return Number.parseInt(readFileSync(path.join(dataDir, 'postgres/postmaster.pid'), 'utf8'), 10)
}

/** Polls until `condition` holds. @throws after 30 s. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 30_000
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`never came true: ${condition}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
