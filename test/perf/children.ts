import { type ChildProcess, fork } from 'node:child_process'

/** A process that is measured, or that measures another one. */
export interface Child {
  readonly pid: number
  readonly process: ChildProcess
  /** The first message of the process. */
  readonly ready: { readonly port?: number }
  /** Sends a request and returns its answer. Only one request may be open at a time. */
  ask<T>(message: unknown): Promise<T>
  /** Sends SIGTERM, and SIGKILL after 12 s; resolves once the process has exited. */
  stop(): Promise<void>
}

const runningChildren = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of runningChildren) child.kill('SIGKILL')
})

/** Starts a script in its own process and waits for its first message. Like production, Node only strips the types. */
export async function startChild(
  script: URL,
  env: Readonly<Record<string, string>> = {},
  execArgv: readonly string[] = [],
): Promise<Child> {
  const extra = process.env.BENCH_NODE_ARGS?.split(' ').filter(Boolean) ?? []
  const child = fork(script, [], {
    execArgv: ['--disable-warning=ExperimentalWarning', ...execArgv, ...extra],
    env: { ...process.env, ...env },
    stdio: ['ignore', 2, 2, 'ipc'], // Standard output is reserved for the tables.
  })
  runningChildren.add(child)
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  void ended.then(() => runningChildren.delete(child))
  child.once('exit', (code, signal) => {
    if (signal !== null && signal !== 'SIGTERM')
      process.stderr.write(`${script.pathname} was killed by ${signal}\n`)
    else if (code !== 0 && code !== null) process.stderr.write(`${script.pathname} ended with ${code}\n`)
  })
  const ready = await readFirstMessage<Child['ready']>(child)
  return {
    pid: child.pid!,
    process: child,
    ready,
    ask: (message) => {
      const answer = readFirstMessage<never>(child)
      child.send(message as never)
      return answer
    },
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), 12_000)
      await ended
      clearTimeout(timer)
    },
  }
}

function readFirstMessage<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const exited = (code: number | null): void =>
      reject(new Error(`${child.spawnargs.at(-1)} ended with ${code}`))
    child.once('exit', exited)
    child.once('message', (message) => {
      child.off('exit', exited)
      resolve(message as T)
    })
  })
}
