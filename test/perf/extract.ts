import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { pageLines, scanImage, scanPdf, textPdf } from '../pdfs.ts'
import { installed, languageData, run } from './native.ts'
import type { Finding, Measured } from './report.ts'
import { type Stack, signUp } from './stack.ts'
import { cpuMeter, family, untilQuiet } from './usage.ts'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
const SENTENCES = 30

interface Case {
  readonly name: string
  readonly pages: number
  readonly documentId: number
  /** Of the native program over the same pages; null when it is not installed. */
  readonly native: { readonly name: string; readonly cpuMs: () => number } | null
  /** Pages per CPU second, at least so much of the native program's. */
  readonly ratio: number
}

interface Figures {
  readonly ours: number[]
  readonly native: number[]
  readonly wall: number[]
}

interface Service {
  readonly port: number
  readonly token: string
  /** Begins to measure the CPU time of the edge, the worker and PostgreSQL together. */
  meter(): () => number
}

/**
 * Whole documents through the whole service, from POST to answer with every page stored, against pdftotext and
 * Tesseract over the same pages. Per core: by the CPU time of all processes that take part. `BENCH_PDF` names a text
 * document of one's own.
 */
export async function extract(stack: Stack): Promise<Measured> {
  const url = await stack.database()
  const edge = await stack.edge(url)
  const { token } = await signUp(edge.port)
  const worker = await stack.worker(url, { WORKER_QUEUES: 'documents' })
  const meter = (): (() => number) => {
    const used = cpuMeter({ all: () => [edge.pid, ...family(worker.pid), ...family(stack.postmaster)] })
    return () => used().used.all
  }
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-pages-'))
  try {
    return await measure({ port: edge.port, token, meter }, await prepare(edge.port, token, folder))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function prepare(port: number, token: string, folder: string): Promise<readonly Case[]> {
  const own = process.env.BENCH_PDF
  const texts = [{ name: 'text', bytes: await textPdf(200, { sentences: SENTENCES }) }]
  if (own !== undefined) texts.push({ name: basename(own), bytes: new Uint8Array(readFileSync(own)) })
  const cases: Case[] = []
  for (const { name, bytes } of texts) {
    const file = join(folder, `${name}.pdf`)
    writeFileSync(file, bytes)
    const native = installed('pdftotext')
      ? { name: 'pdftotext', cpuMs: () => run('pdftotext', [file, '-'])!.cpuMs }
      : null
    cases.push({ name, native, ratio: 0.6, ...(await upload(port, token, bytes)) })
  }
  const scans = 4
  const bytes = await scanPdf(scans, { sentences: SENTENCES })
  cases.push({
    name: 'scans',
    ratio: 0.7,
    native: nativeReader(folder, scans),
    ...(await upload(port, token, bytes)),
  })
  return cases
}

/** Tesseract over the pictures that the scans consist of, with one thread and the same language data. */
function nativeReader(folder: string, scans: number): Case['native'] {
  if (!installed('tesseract')) return null
  const data = languageData(folder)
  const files = Array.from({ length: scans }, (_, i) => {
    const file = join(folder, `scan-${i + 1}.jpg`)
    writeFileSync(file, scanImage(pageLines(i + 1, scans, { sentences: SENTENCES })).bytes)
    return file
  })
  const args = ['stdout', '--tessdata-dir', data, '-l', 'eng', '--oem', '1', '--dpi', '200']
  return {
    name: 'tesseract, one thread',
    cpuMs: () => files.reduce((sum, file) => sum + run('tesseract', [file, ...args])!.cpuMs, 0),
  }
}

async function measure(service: Service, cases: readonly Case[]): Promise<Measured> {
  const figures = new Map(cases.map((each) => [each, { ours: [], native: [], wall: [] } as Figures]))
  for (const each of cases) await ours(service, each)
  for (let round = 0; round < ROUNDS; round++) {
    for (const [each, { ours: mine, native, wall }] of figures) {
      await untilQuiet()
      const { cpuMs, ms } = await ours(service, each)
      mine.push((each.pages * 1000) / cpuMs)
      wall.push((each.pages * 1000) / ms)
      if (each.native !== null) native.push((each.pages * 1000) / each.native.cpuMs())
    }
  }
  const missing = cases.filter((each) => each.native === null).map(({ name }) => name)
  return {
    rounds: ROUNDS,
    findings: [...figures].flatMap(([each, found]) => findingsOf(each, found)),
    notes: [
      'Ours from POST to answer, with storing and progress of every page: CPU time of edge, worker and PostgreSQL.',
      ...missing.map((name) => `The program that ${name} are compared with is not installed: no ratio.`),
    ],
  }
}

function findingsOf(
  { name, pages, native, ratio }: Case,
  { ours: mine, native: theirs, wall }: Figures,
): Finding[] {
  const reference = native === null ? {} : { reference: { name: native.name, values: theirs } }
  const target = native === null ? {} : { target: { of: 'ratio', atLeast: ratio } as const }
  return [
    { name: `${pages} pages, ${name}`, unit: 'pages/CPU s', values: mine, ...reference, ...target },
    { name: `${pages} pages, ${name}`, unit: 'pages/s', values: wall },
  ]
}

async function upload(
  port: number,
  token: string,
  bytes: Uint8Array,
): Promise<{ documentId: number; pages: number }> {
  const form = new FormData()
  form.set('file', new File([bytes as Uint8Array<ArrayBuffer>], 'bench.pdf'))
  const headers = { authorization: `Bearer ${token}` }
  const base = `http://127.0.0.1:${port}/api/v1/documents`
  const { id } = (await (await fetch(base, { method: 'POST', body: form, headers })).json()) as { id: number }
  const counts = await post(`${base}/${id}/extract`, token)
  return { documentId: id, pages: counts.read }
}

/** One extraction through the service, which must read every page. */
async function ours(service: Service, { documentId, pages }: Case): Promise<{ ms: number; cpuMs: number }> {
  const used = service.meter()
  const startedAt = performance.now()
  const { read } = await post(
    `http://127.0.0.1:${service.port}/api/v1/documents/${documentId}/extract?force=true`,
    service.token,
  )
  if (read !== pages) throw new Error(`${read} of ${pages} pages were read`)
  return { ms: performance.now() - startedAt, cpuMs: used() }
}

async function post(url: string, token: string): Promise<{ read: number }> {
  const response = await fetch(url, { method: 'POST', headers: { authorization: `Bearer ${token}` } })
  if (response.status !== 200) throw new Error(`extract: ${response.status} ${await response.text()}`)
  return (await response.json()) as { read: number }
}
