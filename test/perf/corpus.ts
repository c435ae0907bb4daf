import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, extname, join, relative } from 'node:path'
import { readIndependently } from './independent.ts'
import type { Measured } from './report.ts'
import { queryRows, type Stack, signUp } from './stack.ts'
import { readFamilyBytes } from './usage.ts'
import { countSharedWords } from './words.ts'

/**
 * `npm run bench -- corpus DIR` extracts every file of a folder through a real edge and worker, two at a time. Each
 * page must have a row, no page may take over 30 s, and the worker must survive with less than 2 GB. Compares the words of
 * each kind of file with those of an independent reader (`independent.ts`).
 */

interface FileReport {
  readonly file: string
  /** Status of the extraction's response; null without a response. */
  readonly status: number | null
  readonly pages: number
  readonly rows: number
  readonly read: number
  readonly unread: Readonly<Record<string, number>>
  readonly seconds: number
  /** Longest time between two pages, in seconds. */
  readonly slowest: number
  /** Peak resident memory of the worker and its children during the file, in MB. */
  readonly peakMb: number
  /** Words in common with an independent reader; null without one. */
  readonly words: SharedWords | null
}

interface SharedWords {
  readonly theirs: number
  readonly ours: number
  /** Number of their words that our text contains. */
  readonly found: number
  /** Number of our words that their text contains. */
  readonly confirmed: number
}

interface Service {
  readonly url: string
  readonly base: string
  readonly token: string
  readonly peak: () => number
}

const CONCURRENCY = 2
const MIN_WORDS = 100
const MAX_PAGE_SECONDS = 30
const MAX_WORKER_MB = 2048
const POLL_INTERVAL_MS = 50

export async function measureCorpus(stack: Stack): Promise<Measured> {
  const folder = process.argv[3]
  if (folder === undefined) throw new Error('Usage: npm run bench -- corpus DIR')
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
  const url = await stack.createDatabase()
  const edge = await stack.edge(url, { REQUEST_WAIT_SECONDS: '3600', MAX_UPLOAD_BYTES: String(2 ** 30) })
  const worker = await stack.worker(url, { WORKER_QUEUES: 'documents' })
  let highest = 0
  const watch = setInterval(() => {
    if (worker.process.exitCode === null) highest = Math.max(highest, readFamilyBytes(worker.pid) / 2 ** 20)
  }, POLL_INTERVAL_MS)
  const peak = (): number => {
    const value = Math.round(highest)
    highest = 0
    return value
  }
  const { token } = await signUp(edge.port)
  const service = { url, base: `http://127.0.0.1:${edge.port}/api/v1/documents`, token, peak }
  const reports: FileReport[] = []
  const queue = files.values()
  const readSome = async (): Promise<void> => {
    for (const file of queue) {
      reports.push(await readFile(service, file, relative(folder, file)))
      if (reports.length % 100 === 0) {
        process.stdout.write(`${reports.length} of ${files.length} files\n`)
        writeReports(reports)
      }
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, readSome))
  clearInterval(watch)
  const crashes = worker.process.exitCode !== null || worker.process.signalCode !== null ? 1 : 0
  return summarize(reports, crashes)
}

async function readFile(service: Service, file: string, name: string): Promise<FileReport> {
  const bytes = readFileSync(file)
  const headers = { authorization: `Bearer ${service.token}` }
  const form = new FormData()
  form.set('file', new File([bytes], basename(file)))
  const startedAt = performance.now()
  const uploaded = await fetch(service.base, { method: 'POST', body: form, headers })
  const { id } = (await uploaded.json()) as { id: number }
  const response = await fetch(`${service.base}/${id}/extract`, { method: 'POST', headers }).catch(() => null)
  const seconds = (performance.now() - startedAt) / 1000
  await response?.arrayBuffer()
  const rows = await queryRows(
    service.url,
    `select page_number, status, detail, text, extract(epoch from updated_at - lag(updated_at) over (order by page_number))::float8 as took
    from document_page where document_id = $1 order by page_number`,
    [id],
  )
  const [document] = await queryRows(service.url, 'select page_count from document where id = $1', [id])
  const unread: Record<string, number> = {}
  for (const { status, detail } of rows)
    if (status === 'unread') unread[String(detail)] = (unread[String(detail)] ?? 0) + 1
  return {
    file: name,
    status: response?.status ?? null,
    pages: Number(document?.page_count ?? 0),
    rows: rows.length,
    read: rows.filter(({ status }) => status === 'read').length,
    unread,
    seconds,
    slowest: Math.max(rows.length > 1 ? 0 : seconds, ...rows.map(({ took }) => Number(took ?? 0))),
    peakMb: service.peak(),
    words: await compareWords(file, bytes, rows.map(({ text }) => text).join('\n')),
  }
}

async function compareWords(file: string, bytes: Buffer, text: string): Promise<SharedWords | null> {
  const theirs = await readIndependently(file, bytes)
  if (theirs === null) return null
  const [found, confirmed] = [countSharedWords(theirs, text), countSharedWords(text, theirs)]
  return { theirs: found.all, ours: confirmed.all, found: found.shared, confirmed: confirmed.shared }
}

/** Lists the recall and the precision of the words of each kind of file. */
function listKinds(reports: readonly FileReport[]): string[] {
  const kinds = Map.groupBy(reports, ({ file }) => extname(file).toLowerCase())
  return [...kinds].sort().flatMap(([kind, files]) => {
    const words = files.flatMap(({ words }) => words ?? [])
    const sum = (name: keyof SharedWords): number => words.reduce((n, one) => n + one[name], 0)
    if (sum('theirs') === 0) return []
    const share = (part: number, all: number): string => (part / Math.max(1, all)).toFixed(4)
    const recall = share(sum('found'), sum('theirs'))
    const precision = share(sum('confirmed'), sum('ours'))
    return [
      `${kind}: recall ${recall}, precision ${precision} (${words.length} files, ${sum('theirs')} words)`,
    ]
  })
}

function summarize(reports: readonly FileReport[], crashes: number): Measured {
  const sum = (pick: (report: FileReport) => number): number => reports.reduce((n, one) => n + pick(one), 0)
  const max = (pick: (report: FileReport) => number): number => Math.max(0, ...reports.map(pick))
  const shares = reports.flatMap(({ words }) =>
    words === null || words.theirs < MIN_WORDS ? [] : words.found / words.theirs,
  )
  const value = (name: string, unit: string, given: number, atMost?: number) => ({
    name,
    unit,
    values: [given],
    ...(atMost === undefined ? {} : { target: { of: 'value', atMost } as const }),
  })
  writeReports(reports)
  return {
    rounds: 1,
    findings: [
      value('files', '', reports.length),
      value(
        'pages',
        '',
        sum(({ pages }) => pages),
      ),
      value(
        'pages read',
        '',
        sum(({ read }) => read),
      ),
      value(
        'pages without a row',
        '',
        sum(({ pages, rows }) => Math.abs(pages - rows)),
        0,
      ),
      value('files without a 200 response', '', reports.filter(({ status }) => status !== 200).length, 0),
      value('crashes of the worker', '', crashes, 0),
      value(
        'slowest page',
        's',
        max(({ slowest }) => slowest),
        MAX_PAGE_SECONDS,
      ),
      value(
        'worker memory',
        'MB',
        max(({ peakMb }) => peakMb),
        MAX_WORKER_MB,
      ),
      value('files of 100 words or more', '', shares.length),
      value('files with at least 99 % of the words', '', shares.filter((share) => share >= 0.99).length),
    ],
    notes: [
      'One line per file: bench-results/corpus-files.json',
      ...listKinds(reports),
      ...countReasons(reports),
    ],
  }
}

/** Writes one line per file. Call this after each file, so that an aborted run leaves a report. */
function writeReports(reports: readonly FileReport[]): void {
  mkdirSync('bench-results', { recursive: true })
  writeFileSync(join('bench-results', 'corpus-files.json'), `${JSON.stringify(reports, null, 1)}\n`)
}

/** Lists the reasons of unread pages with their counts. */
function countReasons(reports: readonly FileReport[]): string[] {
  const counts = new Map<string, number>()
  for (const { unread } of reports)
    for (const [reason, n] of Object.entries(unread)) counts.set(reason, (counts.get(reason) ?? 0) + n)
  return [...counts].sort((a, b) => b[1] - a[1]).map(([reason, n]) => `${n} unread: ${reason}`)
}
