import { subscribe } from 'node:diagnostics_channel'
import { setTimeout as delay } from 'node:timers/promises'
import type { Worker as Thread } from 'node:worker_threads'
import { createLog } from '../../tasks/platform/log.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { loadKeys } from '../../tasks/platform/stored-keys.ts'
import { startWorker, type Worker } from '../../workers/worker.ts'
import { buildTextPdf, createPageLines } from '../pdfs.ts'
import type { Child } from './children.ts'
import type { Measured } from './report.ts'
import { queryRows, SECRET, type Stack, signUp } from './stack.ts'

/**
 * `npm run bench -- kills` repeatedly kills the worker, the job's thread or PostgreSQL with SIGKILL at a random moment
 * of a 200-page extraction. The rows must equal those of an undisturbed extraction, and each page must be written once.
 */

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 50)
const PAGES = 200
// Duration of an undisturbed extraction. The kill happens at a random time within it.
const EXTRACTION_MS = 900
const TIMEOUT_MS = 90_000
const VICTIM_KINDS = ['worker', 'thread', 'postgres'] as const
type Kind = (typeof VICTIM_KINDS)[number]

const WITNESS_SQL = `
  create table witnessed (document_id integer, page_number integer);
  create function witness() returns trigger language plpgsql as $$ begin
    insert into witnessed values (new.document_id, new.page_number);
    return new;
  end $$;
  create trigger witness after insert or update on document_page for each row execute function witness()`

interface RoundSetup {
  readonly url: string
  readonly base: string
  readonly headers: Readonly<Record<string, string>>
  readonly victims: Victims
}

interface Victims {
  /** Ensures that the only running worker can be killed in this way. */
  prepare(kind: Kind): Promise<void>
  kill(kind: Kind): Promise<void>
  end(): Promise<void>
}

interface Round {
  readonly kind: Kind
  readonly attempts: number
  readonly wrong: number
  readonly doubled: number
  readonly ms: number
}

export async function measureKills(stack: Stack): Promise<Measured> {
  const url = await stack.createDatabase()
  await queryRows(url, WITNESS_SQL)
  const edge = await stack.edge(url, { LOG_LEVEL: 'fatal' })
  const { token } = await signUp(edge.port)
  const base = `http://127.0.0.1:${edge.port}/api/v1/documents`
  const headers = { authorization: `Bearer ${token}` }
  const victims = await prepareVictims(stack, url)
  const rounds: Round[] = []
  for (let n = 0; n < ROUNDS; n++) {
    rounds.push(await runRound({ url, base, headers, victims }, VICTIM_KINDS[n % VICTIM_KINDS.length]!, n))
  }
  await victims.end()
  return summarize(rounds)
}

/**
 * Prepares the victims. To be killed, a thread must belong to a worker in this process; the other victims are separate
 * processes.
 */
async function prepareVictims(stack: Stack, url: string): Promise<Victims> {
  const threads: Thread[] = []
  subscribe('worker_threads', (message) => threads.push((message as { worker: Thread }).worker))
  const settings = parseSettings({
    DATABASE_URL: url,
    SECRET_KEY: SECRET,
    WORKER_QUEUES: 'documents',
    NODE_ENV: 'production',
  })
  const log = await createLog('silent', 'kills')
  let child: Child | null = await stack.worker(url, { WORKER_QUEUES: 'documents', LOG_LEVEL: 'fatal' })
  let own: Worker | null = null
  const prepare = async (kind: Kind): Promise<void> => {
    if (kind === 'thread' && own === null) {
      await child?.stop()
      child = null
      const { material } = await loadKeys(settings, url, log)
      own = await startWorker({ settings, databaseUrl: url, directUrl: url, log, keys: material })
    } else if (kind !== 'thread' && child === null) {
      await own?.stop()
      own = null
      child = await stack.worker(url, { WORKER_QUEUES: 'documents', LOG_LEVEL: 'fatal' })
    }
  }
  return {
    kill: async (kind) => {
      if (kind === 'postgres') process.kill(await readPostmasterPid(url), 'SIGKILL')
      else if (kind === 'thread') for (const thread of threads.splice(0)) await thread.terminate()
      else {
        child!.process.kill('SIGKILL')
        child = await stack.worker(url, { WORKER_QUEUES: 'documents', LOG_LEVEL: 'fatal' })
      }
    },
    prepare,
    end: async () => void (await own?.stop()),
  }
}

async function readPostmasterPid(url: string): Promise<number> {
  const [row] = await queryRows(url, `select pg_read_file('postmaster.pid', 0, 20) as pid`)
  return Number.parseInt(String(row!.pid), 10)
}

async function runRound(scene: RoundSetup, kind: Kind, n: number): Promise<Round> {
  await scene.victims.prepare(kind)
  const line = (page: number): string => `Round ${n} page ${page}`
  const form = new FormData()
  form.set('file', new File([(await buildTextPdf(PAGES, { line })) as Uint8Array<ArrayBuffer>], 'kills.pdf'))
  const uploaded = await fetch(scene.base, { method: 'POST', body: form, headers: scene.headers })
  const { id } = (await uploaded.json()) as { id: number }
  const startedAt = performance.now()
  const started = await fetch(`${scene.base}/${id}/extract?background=true`, {
    method: 'POST',
    headers: scene.headers,
  })
  const { job_id } = (await started.json()) as { job_id: string }
  // Wait for the first page. A thread that dies while it loads modules indicates a broken installation, which is not
  // tested here.
  if (kind === 'thread') await waitForFirstPage(scene.url, id)
  await delay(Math.random() * (kind === 'thread' ? EXTRACTION_MS / 2 : EXTRACTION_MS))
  await scene.victims.kill(kind)
  const attempts = await waitForEnd(scene.url, job_id)
  const ms = performance.now() - startedAt
  const rows = await queryRows(
    scene.url,
    'select page_number, text from document_page where document_id = $1 order by 1',
    [id],
  )
  const right = rows.filter(
    ({ page_number, text }, i) =>
      page_number === i + 1 && text === createPageLines(i + 1, PAGES, { line }).join('\n'),
  )
  const [written] = await queryRows(
    scene.url,
    'select count(*)::int - count(distinct page_number)::int as doubled from witnessed where document_id = $1',
    [id],
  )
  return { kind, attempts, wrong: PAGES - right.length, doubled: Number(written!.doubled), ms }
}

async function waitForFirstPage(url: string, id: number): Promise<void> {
  const found = 'select from document_page where document_id = $1 limit 1'
  for (const end = performance.now() + TIMEOUT_MS; performance.now() < end; await delay(5))
    if ((await queryRows(url, found, [id])).length > 0) return
  throw new Error('No page was stored')
}

/** Waits until the job ends, even while the database is down, and returns its number of attempts. */
async function waitForEnd(url: string, jobId: string): Promise<number> {
  for (const end = performance.now() + TIMEOUT_MS; performance.now() < end; await delay(50)) {
    const rows = await queryRows(url, 'select status, attempt from job where id = $1', [jobId]).catch(
      () => [],
    )
    if (rows[0]?.status === 'done') return Number(rows[0].attempt)
    if (rows[0]?.status === 'failed') throw new Error(`The job failed in attempt ${rows[0].attempt}`)
  }
  throw new Error('The job did not end')
}

function summarize(rounds: readonly Round[]): Measured {
  const of = (kind: Kind): readonly Round[] => rounds.filter((one) => one.kind === kind)
  const sum = (pick: (one: Round) => number): number => rounds.reduce((n, one) => n + pick(one), 0)
  return {
    rounds: rounds.length,
    findings: [
      {
        name: 'pages lost or wrong',
        unit: '',
        values: [sum((one) => one.wrong)],
        target: { of: 'value', atMost: 0 },
      },
      {
        name: 'pages written twice',
        unit: '',
        values: [sum((one) => one.doubled)],
        target: { of: 'value', atMost: 0 },
      },
      ...VICTIM_KINDS.map((kind) => ({
        name: `time to completion, ${kind} killed`,
        unit: 'ms',
        values: of(kind).map((one) => one.ms),
      })),
    ],
    notes: VICTIM_KINDS.map(
      (kind) =>
        `${kind}: ${of(kind).length} kills, ${of(kind).filter((one) => one.attempts > 1).length} of them during an attempt`,
    ),
  }
}
