import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { openTextLayer } from '../../workers/children/pdf/pdfium.ts'
import { buildScanPdf, buildTextPdf, createPageLines, renderScan } from '../pdfs.ts'
import { isInstalled, runProgram, unpackLanguageData } from './native.ts'
import type { Finding, Measured } from './report.ts'
import { type Stack, signUp } from './stack.ts'
import { listFamilyPids, startCpuMeter, waitUntilQuiet } from './usage.ts'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
const TEXTS = Number(process.env.BENCH_PAGES ?? 1000)
const SCANS = Number(process.env.BENCH_SCANS ?? 4)
const SENTENCES = 30

interface Case {
  readonly name: string
  readonly pages: number
  readonly bytes: Uint8Array
  /** Runs the native program on the same pages; null if it is not installed. */
  readonly native: { readonly name: string; readonly cpuMs: () => number } | null
  /** Lower bound of the ratio of our pages per CPU second to those of the native program. */
  readonly minRatio: number
}

interface Figures {
  readonly ours: OurExtraction[]
  readonly native: number[]
}

const SERVICE_PARTS = ['edge', 'worker', 'children', 'PostgreSQL'] as const

/** CPU time of each part and wall time of one extraction, in ms. */
interface OurExtraction {
  readonly used: Readonly<Record<(typeof SERVICE_PARTS)[number], number>>
  readonly ms: number
}

interface Service {
  readonly port: number
  readonly token: string
  /** Starts a measurement. The returned function returns the CPU time since then. */
  meter(): () => OurExtraction['used']
}

/**
 * Measures extractions by the whole service, from the POST to the answer with all pages stored. The references are
 * pdftotext and Tesseract on the same pages. Rates are per core, because they count the CPU time of all processes.
 * `BENCH_PDF` names an additional text document.
 */
export async function extract(stack: Stack): Promise<Measured> {
  const url = await stack.createDatabase()
  const edge = await stack.edge(url)
  const { token } = await signUp(edge.port)
  const worker = await stack.worker(url, { WORKER_QUEUES: 'documents' })
  const meter = (): (() => OurExtraction['used']) => {
    const used = startCpuMeter({
      edge: () => [edge.pid],
      worker: () => [worker.pid],
      children: () => listFamilyPids(worker.pid).slice(1),
      PostgreSQL: () => listFamilyPids(stack.postmaster),
    })
    return () => used().used
  }
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-pages-'))
  try {
    return await measure({ port: edge.port, token, meter }, await prepareCases(folder))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function prepareCases(folder: string): Promise<readonly Case[]> {
  const own = process.env.BENCH_PDF
  const texts = [{ name: 'text', bytes: await buildTextPdf(TEXTS, { sentences: SENTENCES }) }]
  if (own !== undefined) texts.push({ name: basename(own), bytes: new Uint8Array(readFileSync(own)) })
  const cases: Case[] = []
  for (const { name, bytes } of texts) {
    const file = join(folder, `${name}.pdf`)
    writeFileSync(file, bytes)
    const native = isInstalled('pdftotext')
      ? { name: 'pdftotext', cpuMs: () => runProgram('pdftotext', [file, '-'])!.cpuMs }
      : null
    cases.push({ name, native, minRatio: 0.22, bytes, pages: await countPages(bytes) })
  }
  const bytes = await buildScanPdf(SCANS, { sentences: SENTENCES })
  cases.push({ name: 'scans', minRatio: 0.77, native: nativeReader(folder, SCANS), bytes, pages: SCANS })
  return cases
}

async function countPages(bytes: Uint8Array): Promise<number> {
  const layer = await openTextLayer(bytes)
  layer?.close()
  return layer!.pageCount
}

/** Returns a run of Tesseract on the images of the scans, with one thread and the same language data. */
function nativeReader(folder: string, scans: number): Case['native'] {
  if (!isInstalled('tesseract')) return null
  const data = unpackLanguageData(folder)
  const files = Array.from({ length: scans }, (_, i) => {
    const file = join(folder, `scan-${i + 1}.jpg`)
    writeFileSync(file, renderScan(createPageLines(i + 1, scans, { sentences: SENTENCES })).bytes)
    return file
  })
  const args = ['stdout', '--tessdata-dir', data, '-l', 'eng', '--oem', '1', '--dpi', '200']
  return {
    name: 'tesseract, one thread',
    cpuMs: () => files.reduce((sum, file) => sum + runProgram('tesseract', [file, ...args])!.cpuMs, 0),
  }
}

async function measure(service: Service, cases: readonly Case[]): Promise<Measured> {
  const figures = new Map(cases.map((each) => [each, { ours: [], native: [] } as Figures]))
  for (const each of cases) await measureOurs(service, each, 'first')
  for (let round = 0; round < ROUNDS; round++) {
    for (const [each, { ours: mine, native }] of figures) {
      mine.push(await measureOurs(service, each, `${round}`))
      if (each.native !== null) native.push((each.pages * 1000) / each.native.cpuMs())
    }
  }
  const missing = cases.filter((each) => each.native === null).map(({ name }) => name)
  return {
    rounds: ROUNDS,
    findings: [...figures].flatMap(([each, found]) => findingsOf(each, found)),
    notes: [
      'Ours from POST to answer, with storing, indexing and progress: CPU time of edge, worker, its children and PostgreSQL.',
      ...missing.map((name) => `No ratio for ${name}: the native program is not installed.`),
    ],
  }
}

function findingsOf(
  { name, pages, native, minRatio }: Case,
  { ours: mine, native: theirs }: Figures,
): Finding[] {
  const reference = native === null ? {} : { reference: { name: native.name, values: theirs } }
  const target = native === null ? {} : { target: { of: 'ratio', atLeast: minRatio } as const }
  const all = `${pages} pages, ${name}`
  const cpuMs = mine.map(({ used }) => SERVICE_PARTS.reduce((sum, part) => sum + used[part], 0))
  return [
    {
      name: all,
      unit: 'pages/CPU s',
      values: cpuMs.map((ms) => (pages * 1000) / ms),
      ...reference,
      ...target,
    },
    { name: all, unit: 'pages/s', values: mine.map(({ ms }) => (pages * 1000) / ms) },
    ...SERVICE_PARTS.map((part) => ({
      name: `${all}: ${part}`,
      unit: 'CPU ms/page',
      values: mine.map(({ used }) => used[part] / pages),
    })),
  ]
}

/** Uploads a modified copy, so that its bytes are new, and extracts it. The service must read every page. */
async function measureOurs(service: Service, { bytes, pages }: Case, copy: string): Promise<OurExtraction> {
  const base = `http://127.0.0.1:${service.port}/api/v1/documents`
  const form = new FormData()
  form.set('file', new File([bytes as Uint8Array<ArrayBuffer>, `\n% ${copy}`], 'bench.pdf'))
  const headers = { authorization: `Bearer ${service.token}` }
  // The native programs block this thread for long. Let Node process sockets that were closed meanwhile.
  await setImmediate()
  const { id } = (await (await fetch(base, { method: 'POST', body: form, headers })).json()) as { id: number }
  await waitUntilQuiet()
  const used = service.meter()
  const startedAt = performance.now()
  const { read } = await post(`${base}/${id}/extract`, service.token)
  if (read !== pages) throw new Error(`${read} of ${pages} pages were read`)
  return { ms: performance.now() - startedAt, used: used() }
}

async function post(url: string, token: string): Promise<{ read: number }> {
  const response = await fetch(url, { method: 'POST', headers: { authorization: `Bearer ${token}` } })
  if (response.status !== 200) throw new Error(`extract: ${response.status} ${await response.text()}`)
  return (await response.json()) as { read: number }
}
