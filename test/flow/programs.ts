import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { after } from 'node:test'
import { collectLines } from '../service.ts'

/** A worker that runs as a process. */
export interface WorkerProcess {
  readonly log: readonly string[]
  /** Sends SIGTERM, waits for the exit, and returns its code. */
  stop(): Promise<number | null>
}

/** Starts a program as a worker that is killed after the test file. */
export function startProgram(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): WorkerProcess {
  const log: string[] = []
  const child = spawn(command, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  for (const output of [child.stdout, child.stderr]) collectLines(output, log)
  const ended = once(child, 'exit') as Promise<[number | null]>
  after(() => child.kill('SIGKILL'))
  return {
    log,
    stop: async () => {
      child.kill('SIGTERM')
      return (await ended)[0]
    },
  }
}

/** Returns why programs cannot run on this machine; false if all are there. */
export function findMissing(...programs: readonly string[]): string | false {
  const missing = programs.filter((name) => spawnSync(name, ['--version']).error !== undefined)
  return missing.length > 0 && `needs ${missing.join(' and ')}`
}
