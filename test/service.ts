import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { after } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { IS_LONG } from './runs.ts'
import { stopAfterFile } from './services.ts'
import { until } from './until.ts'

/** Starts the service's processes on a test database, and sends requests to them. */

export interface Child {
  readonly process: ChildProcess
  /** Message that the process sent when it was ready: an edge sends its `port`, a worker its `lease`. */
  readonly ready: { readonly port?: number; readonly lease?: string }
  /** Kills the process and waits for its exit. */
  kill(signal?: NodeJS.Signals): Promise<void>
  /** Lines that the process has logged. */
  readonly log: readonly string[]
}

export const SECRET = 'a secret for tests, long enough to be one'
const ROOT = new URL('../', import.meta.url)

/**
 * Node flags for processes that live for seconds. Optimizing hot code would take a sixth of their CPU time. All
 * processes have the same flags, because V8 keeps a separate code cache for each set of flags.
 */
export const SHORT_LIVED_FLAGS = ['--disable-warning=ExperimentalWarning', ...(IS_LONG ? [] : ['--no-opt'])]

/**
 * Starts `edge/main.ts` or `workers/main.ts` as a process that is killed after the file. Call it at the top of the
 * file, not in a hook. @param root folder of the code, for example of another version.
 */
export async function startProcess(
  kind: 'edge' | 'worker',
  url: string,
  env: Readonly<Record<string, string>> = {},
  execArgv: readonly string[] = [],
  log: string[] = [],
  root: URL = ROOT,
): Promise<Child> {
  const child = await launchProcess(kind, url, env, execArgv, log, root)
  stopAfterFile(() => child.kill())
  return child
}

/**
 * Starts a process as `startProcess` does, but the caller must end it. Appends log lines to `log`, including those of
 * the start. @throws if the process exits before it is ready.
 */
export async function launchProcess(
  kind: 'edge' | 'worker',
  url: string,
  env: Readonly<Record<string, string>> = {},
  execArgv: readonly string[] = [],
  log: string[] = [],
  root: URL = ROOT,
): Promise<Child> {
  const script = fileURLToPath(new URL(kind === 'edge' ? 'edge/main.ts' : 'workers/main.ts', root))
  const child = fork(script, [], {
    execArgv: [...SHORT_LIVED_FLAGS, ...execArgv],
    env: {
      ...process.env,
      DATABASE_URL: url,
      SECRET_KEY: SECRET,
      PORT: '0',
      LOG_LEVEL: 'info',
      NODE_ENV: 'test',
      UWS_HTTP_MAX_HEADERS_SIZE: '65536',
      // Makes the service exit when the test process ends, even if the test process is killed.
      MILLRACE_SUPERVISED: '1',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  for (const output of [child.stdout!, child.stderr!]) collectLines(output, log)
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const ready = await new Promise<Child['ready']>((resolve, reject) => {
    child.once('message', (message) => resolve(message as Child['ready']))
    child.once('exit', (code) => reject(new Error(`The ${kind} ended with ${code}:\n${log.join('\n')}`)))
  })
  const kill = async (signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal)
    await ended
  }
  return { process: child, ready, kill, log }
}

/** Appends the complete lines of an output stream to a log. */
export function collectLines(output: Readable, log: string[]): void {
  createInterface({ input: output }).on('line', (line) => {
    if (line !== '') log.push(line)
  })
}

export interface ScriptResult {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a script of the service, such as `workers/doctor/main.ts`, and waits until it exits. */
export async function runScript(
  script: string,
  env: Readonly<Record<string, string>>,
  args: readonly string[] = [],
): Promise<ScriptResult> {
  const file = fileURLToPath(new URL(script, ROOT))
  const child = spawn(process.execPath, [...SHORT_LIVED_FLAGS, file, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  after(() => child.kill('SIGKILL'))
  const [stdout, stderr, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number]>,
  ])
  return { status, stdout, stderr }
}

export interface Frame {
  readonly event: string
  readonly id: string
  readonly data: { readonly status?: string; readonly label?: string; readonly [key: string]: unknown }
}

/** Client of one edge. */
export class Client {
  readonly base: string
  token = ''

  constructor(port: number) {
    this.base = `http://127.0.0.1:${port}`
  }

  async fetch(
    path: string,
    init: RequestInit & { headers?: Record<string, string> } = {},
  ): Promise<Response> {
    // Lets Node process sockets that closed while the test was computing.
    await setImmediate()
    const headers = {
      ...(this.token === '' ? {} : { authorization: `Bearer ${this.token}` }),
      ...init.headers,
    }
    return fetch(`${this.base}${path}`, { ...init, headers })
  }

  post(path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
    if (body === undefined) return this.fetch(path, { method: 'POST', headers })
    return this.fetch(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
  }

  /** Registers an account and signs in to it. */
  async register(email: string, password = 'correct horse'): Promise<{ id: number; role: string }> {
    const response = await this.post('/api/v1/auth/register', { email, password })
    if (response.status !== 200) throw new Error(`register: ${response.status} ${await response.text()}`)
    const user = (await response.json()) as { id: number; role: string }
    await this.signIn(email, password)
    return user
  }

  async signIn(email: string, password = 'correct horse'): Promise<void> {
    const response = await this.fetch('/api/v1/auth/token', {
      method: 'POST',
      body: new URLSearchParams({ username: email, password }),
    })
    if (response.status !== 200) throw new Error(`token: ${response.status} ${await response.text()}`)
    this.token = ((await response.json()) as { access_token: string }).access_token
  }

  async upload(bytes: Uint8Array, name: string, fields: Record<string, string> = {}): Promise<Response> {
    const form = new FormData()
    for (const [key, value] of Object.entries(fields)) form.set(key, value)
    form.set('file', new File([bytes as Uint8Array<ArrayBuffer>], name))
    return this.fetch('/api/v1/documents', { method: 'POST', body: form })
  }

  /** Opens an event stream. Its frames collect in `frames`; `ended` becomes true when the stream ends or breaks. */
  async stream(path: string, headers: Record<string, string> = {}): Promise<Stream> {
    const abort = new AbortController()
    const response = await this.fetch(path, {
      headers: { accept: 'text/event-stream', ...headers },
      signal: abort.signal,
    })
    return new Stream(response, abort)
  }
}

/** Open event stream. */
export class Stream {
  readonly frames: Frame[] = []
  readonly response: Response
  comments = 0
  ended = false
  broken = false
  private readonly abort: AbortController

  constructor(response: Response, abort: AbortController) {
    this.response = response
    this.abort = abort
    void this.read()
  }

  get lastId(): string {
    return this.frames.at(-1)?.id ?? ''
  }

  close(): void {
    this.abort.abort()
  }

  until(
    what: string,
    condition: (frames: readonly Frame[]) => boolean,
    deadlineMs = 30_000,
  ): Promise<unknown> {
    return until(what, () => condition(this.frames), deadlineMs)
  }

  /** Waits until the server ends the stream, and returns its frames. */
  async waitForEnd(deadlineMs = 30_000): Promise<readonly Frame[]> {
    await until('the stream has ended', () => this.ended, deadlineMs)
    return this.frames
  }

  private async read(): Promise<void> {
    let text = ''
    try {
      for await (const chunk of this.response.body!.pipeThrough(
        new TextDecoderStream() as never,
      ) as unknown as AsyncIterable<string>) {
        text += chunk
        for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
          this.parseBlock(text.slice(0, end))
          text = text.slice(end + 2)
        }
      }
    } catch {
      this.broken = true
    }
    this.ended = true
  }

  private parseBlock(block: string): void {
    const lines = block.split('\n')
    if (lines.some((line) => line.startsWith(':'))) this.comments++
    const field = (name: string): string =>
      lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? ''
    if (field('data') !== '')
      this.frames.push({ event: field('event'), id: field('id'), data: JSON.parse(field('data')) })
  }
}
