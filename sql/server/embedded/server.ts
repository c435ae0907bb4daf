import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readSync, statSync, truncateSync } from 'node:fs'
import { createServer } from 'node:net'
import { StartError } from '../start-error.ts'
import type { Account } from './account.ts'
import type { Binaries } from './binaries.ts'
import { clearLeftovers, readPidFile, stopServer } from './leftover.ts'

export interface ServerOptions {
  readonly binaries: Binaries
  readonly account: Account | undefined
  readonly data: string
  readonly sockets: string
  readonly logFile: string
  readonly settings: Record<string, string>
  readonly stopTimeoutMs: number
  readonly log: (line: string) => void
}

export interface Server {
  /** Port on 127.0.0.1, which is also in the name of the socket. It never changes. */
  readonly port: number
  stop(): Promise<void>
}

const MAX_LOG_BYTES = 10 * 1024 * 1024
const START_TIMEOUT_MS = 120_000 // A crash may have left much WAL to replay.
const RESTART_DELAYS_MS = [0, 250, 500, 1_000, 2_000, 4_000, 8_000, 10_000]

/**
 * Starts the server, and restarts it on the same port if it dies unexpectedly.
 * Throws a StartError with the last lines of the server's log if it doesn't come up.
 */
export async function runServer(options: ServerOptions): Promise<Server> {
  truncateLog(options.logFile)
  let stopping = false
  const isStopping = () => stopping
  let { port, child } = await startOnFreePort(options)
  let restarting: Promise<void> | undefined
  const watch = () => {
    child.once('exit', (code, signal) => {
      if (stopping) return
      options.log(`The database server died (${signal ?? code}); restarting it`)
      restarting = restart()
    })
  }
  const restart = async () => {
    for (let attempt = 0; !stopping; attempt++) {
      await pause(RESTART_DELAYS_MS[attempt] ?? 10_000, isStopping)
      try {
        await clearLeftovers(options.data, options.log)
        child = await launchServer(options, port, isStopping)
        return watch()
      } catch (error) {
        options.log(`The database server didn't start: ${(error as Error).message}`)
      }
    }
  }
  watch()
  return {
    port,
    stop: async () => {
      stopping = true
      await restarting
      if (!hasEnded(child)) await stopServer(child.pid!, options.stopTimeoutMs)
    },
  }
}

async function startOnFreePort(options: ServerOptions): Promise<{ port: number; child: ChildProcess }> {
  for (let attempt = 1; ; attempt++) {
    const port = await findFreePort()
    try {
      return { port, child: await launchServer(options, port) }
    } catch (error) {
      // Another program took the port between the check and the server's start.
      if (attempt === 5 || !/could not (bind|create any TCP)/.test((error as Error).message)) throw error
    }
  }
}

async function launchServer(
  options: ServerOptions,
  port: number,
  isStopping: () => boolean = () => false,
): Promise<ChildProcess> {
  const output = openSync(options.logFile, 'a', 0o600)
  const logStart = statSync(options.logFile).size
  const child = spawn(options.binaries.postgres, buildServerArguments(options, port), {
    cwd: '/',
    env: options.binaries.env,
    stdio: ['ignore', output, output],
    detached: true, // Ctrl-C in the terminal must not reach the server, which the ordered shutdown stops.
    ...options.account,
  })
  closeSync(output)
  child.unref()
  // Requests a fast shutdown, synchronously, if the process exits without stop(), such as after an uncaught error.
  const lastResort = () => child.kill('SIGINT')
  process.once('exit', lastResort)
  child.once('exit', () => process.removeListener('exit', lastResort))
  const failure = await waitUntilReady(child, options, isStopping)
  if (failure === undefined) return child
  if (child.pid !== undefined && !hasEnded(child)) await stopServer(child.pid, options.stopTimeoutMs)
  throw new StartError(
    `The database server ${failure}. ${options.logFile} ends:\n${readLogTail(options.logFile, logStart)}`,
  )
}

function buildServerArguments({ data, sockets, settings }: ServerOptions, port: number): string[] {
  const all = {
    ...settings,
    port: String(port),
    unix_socket_directories: `"${sockets.replaceAll('"', '""')}"`,
  }
  return ['-D', data, ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
}

/** Waits until postmaster.pid says `ready`. Returns the failure, or undefined on success. */
async function waitUntilReady(
  child: ChildProcess,
  options: ServerOptions,
  isStopping: () => boolean,
): Promise<string | undefined> {
  let failure: string | undefined
  child.once('error', (error) => {
    failure = `can't be run: ${error.message}`
  })
  const started = performance.now()
  let lastReportAt = started
  while (failure === undefined) {
    if (hasEnded(child)) return `exited during startup (${child.signalCode ?? child.exitCode})`
    const file = readPidFile(options.data)
    if (file?.pid === child.pid && file?.status === 'ready') return undefined
    if (isStopping()) return 'was stopped during startup'
    const now = performance.now()
    if (now - started > START_TIMEOUT_MS) return `wasn't ready after ${START_TIMEOUT_MS / 1_000} s`
    if (now - lastReportAt > 5_000) {
      lastReportAt = now
      options.log('The database server is still recovering')
    }
    await pause(10)
  }
  return failure
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}

/** Waits `ms`, or until `early` returns true. */
async function pause(ms: number, early: () => boolean = () => false): Promise<void> {
  const end = performance.now() + ms
  while (performance.now() < end && !early()) {
    await new Promise((resolve) => setTimeout(resolve, Math.min(50, ms)))
  }
}

function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}

function truncateLog(file: string): void {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > MAX_LOG_BYTES) truncateSync(file)
}

function readLogTail(file: string, from: number): string {
  const size = statSync(file).size
  const start = Math.max(from, size - 4_000)
  const handle = openSync(file, 'r')
  const buffer = Buffer.alloc(size - start)
  readSync(handle, buffer, 0, buffer.length, start)
  closeSync(handle)
  return buffer.toString().trim().split('\n').slice(-15).join('\n')
}
