import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createUser } from '../edge/admin/commands.ts'
import { withQueries } from '../tasks/platform/command.ts'
import { loadSettingsOrExit } from '../tasks/platform/process.ts'

/**
 * Shows the main use case as a client (`npm run demo [FILE.pdf]`). Creates an account, uploads a file, extracts it in
 * the background, draws progress from the event stream, and prints the pages. Starts the service if none is running,
 * and stops it afterwards.
 */

interface Page {
  readonly page_number: number
  readonly status: string
  readonly method: string
  readonly model: string | null
  readonly detail: string | null
  readonly text: string
}

interface Frame {
  readonly status: string
  readonly label: string
  readonly progress?: { readonly current: number | null; readonly total: number | null }
  readonly result?: { readonly read: number; readonly unread: number; readonly skipped: number }
  readonly error?: { readonly detail: string }
}

const SAMPLE_FILE = fileURLToPath(new URL('./data/sample.pdf', import.meta.url))
const BAR_WIDTH = 30
const LINES_PER_PAGE = 3
const START_TIMEOUT_MS = 60_000

const settings = loadSettingsOrExit()
const base = settings.publicBaseUrl
const file = process.argv[2] ?? SAMPLE_FILE
const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) =>
  exitWith(`Can't read ${file}: ${error.code}`),
)
const startedService = (await isServiceUp()) ? null : await startService()
try {
  await runDemo(bytes)
} catch (error) {
  process.exitCode = 1
  process.stderr.write(`\n${error instanceof Error ? error.message : error}\n`)
} finally {
  await stopService(startedService)
}

async function runDemo(bytes: Uint8Array<ArrayBuffer>): Promise<void> {
  const authorization = `Bearer ${await signIn()}`
  const form = new FormData()
  form.set('file', new File([bytes], basename(file)))
  const document = await call<{ id: number; title: string; byte_size: number }>('/api/v1/documents', {
    method: 'POST',
    headers: { authorization },
    body: form,
  })
  print(
    `Uploaded ${document.title}, ${document.byte_size.toLocaleString('en')} bytes: document ${document.id}`,
  )
  const { job_id } = await call<{ job_id: string }>(
    `/api/v1/documents/${document.id}/extract?background=true&force=true`,
    {
      method: 'POST',
      headers: { authorization },
    },
  )
  const end = await followJob(job_id, authorization)
  if (end.status !== 'done') throw new Error(`The job ended as ${end.status}: ${end.error?.detail ?? ''}`)
  print(`Read ${end.result!.read}, unread ${end.result!.unread}\n`)
  const pages = await call<Page[]>(`/api/v1/documents/${document.id}/pages`, { headers: { authorization } })
  for (const { page_number } of pages) {
    printPage(
      await call<Page>(`/api/v1/documents/${document.id}/pages/${page_number}`, {
        headers: { authorization },
      }),
    )
  }
}

async function signIn(): Promise<string> {
  const email = `demo-${randomBytes(4).toString('hex')}@example.com`
  // Create a user without registering: the first account that registers becomes admin, which should be a person.
  const password = await withQueries(settings, 'demo', (db) => createUser(db, email))
  print(`Created the account ${email}`)
  const body = new URLSearchParams({ username: email, password })
  return (await call<{ access_token: string }>('/api/v1/auth/token', { method: 'POST', body })).access_token
}

/**
 * Draws each frame of a job's stream and returns the terminal one. Resumes after the last frame if the stream breaks.
 */
async function followJob(jobId: string, authorization: string): Promise<Frame> {
  let lastId = ''
  for (;;) {
    const headers = { authorization, ...(lastId === '' ? {} : { 'last-event-id': lastId }) }
    const response = await fetch(`${base}/api/v1/jobs/${jobId}/events`, { headers })
    if (!response.ok || response.body === null) throw new Error(`The stream answered ${response.status}`)
    let text = ''
    const decoder = new TextDecoder()
    for await (const chunk of response.body) {
      text += decoder.decode(chunk, { stream: true })
      for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
        const block = text.slice(0, end)
        text = text.slice(end + 2)
        lastId = /^id: (.*)$/m.exec(block)?.[1] ?? lastId
        const data = /^data: (.*)$/m.exec(block)?.[1]
        if (data === undefined) continue
        const frame = JSON.parse(data) as Frame
        drawProgress(frame)
        if (frame.status === 'done' || frame.status === 'failed' || frame.status === 'cancelled') {
          process.stdout.write('\n')
          return frame
        }
      }
    }
  }
}

function drawProgress({ status, label, progress }: Frame): void {
  const total = progress?.total ?? 0
  const share = total === 0 ? 0 : (progress?.current ?? 0) / total
  const filled = Math.round(share * BAR_WIDTH)
  const line = `[${'#'.repeat(filled)}${'.'.repeat(BAR_WIDTH - filled)}] ${String(Math.round(share * 100)).padStart(3)} %  ${status}  ${label}`
  process.stdout.write(
    process.stdout.isTTY ? `\r\x1b[2K${line.slice(0, process.stdout.columns - 1)}` : `${line}\n`,
  )
}

function printPage({ page_number, status, method, model, detail, text }: Page): void {
  const how =
    status === 'unread' ? `unread: ${detail}` : method === 'vision' ? `read by ${model}` : 'text layer'
  print(`Page ${page_number} (${how})`)
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
  for (const line of lines.slice(0, LINES_PER_PAGE)) print(`    ${line.slice(0, 100)}`)
}

async function call<T>(path: string, init: RequestInit): Promise<T> {
  const response = await fetch(`${base}${path}`, init)
  const text = await response.text()
  if (!response.ok) throw new Error(`${init.method ?? 'GET'} ${path} answered ${response.status}: ${text}`)
  return JSON.parse(text) as T
}

async function isServiceUp(): Promise<boolean> {
  return fetch(`${base}/health`).then(
    (response) => response.ok,
    () => false,
  )
}

async function startService(): Promise<ChildProcess> {
  print(`No service answers at ${base}: starting it`)
  const script = fileURLToPath(new URL('../workers/start.ts', import.meta.url))
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', script], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, LOG_LEVEL: 'fatal' },
  })
  const end = Date.now() + START_TIMEOUT_MS
  while (!(await isServiceUp())) {
    if (child.exitCode !== null || Date.now() > end)
      exitWith('The service did not start: `npm start` shows why')
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return child
}

async function stopService(child: ChildProcess | null): Promise<void> {
  if (child === null || child.exitCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await ended
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

function exitWith(line: string): never {
  process.stderr.write(`${line}\n`)
  process.exit(1)
}
