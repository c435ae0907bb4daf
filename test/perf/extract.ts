import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { scanPdf, textPdf } from '../pdfs.ts'
import { type Child, startChild } from './children.ts'
import type { Measured } from './report.ts'
import { type SignedIn, type Stack, signUp } from './stack.ts'
import { untilQuiet } from './usage.ts'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)

interface Case {
  readonly name: string
  readonly pages: number
  readonly bytes: Uint8Array
  readonly documentId: number
  readonly file: string
}

interface Caller extends SignedIn {
  readonly port: number
}

/** Pages per second through upload's document, job, thread and database, against the same reader called directly. */
export async function extract(stack: Stack): Promise<Measured> {
  const url = await stack.database()
  const edge = await stack.edge(url)
  const caller = { ...(await signUp(edge.port)), port: edge.port }
  await stack.worker(url, { WORKER_QUEUES: 'documents' })
  const direct = await startChild(new URL('./servers/direct-pages.ts', import.meta.url))
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-pages-'))
  try {
    const cases = [
      await prepare(caller, folder, 'text', 50, await textPdf(50)),
      await prepare(caller, folder, 'scan', 1, await scanPdf(1)),
    ]
    const [text] = cases
    const twin = await prepare(
      caller,
      folder,
      'twin',
      50,
      await textPdf(50, { line: (page) => `Twin ${page}` }),
    )
    for (const each of [...cases, twin]) {
      await ours(caller, each)
      await theirs(direct, each)
    }
    const both = (): Promise<unknown> => Promise.all([ours(caller, text!), ours(caller, twin)])
    await both()
    return await measure(caller, direct, cases, both)
  } finally {
    await direct.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measure(
  caller: Caller,
  direct: Child,
  cases: readonly Case[],
  both: () => Promise<unknown>,
): Promise<Measured> {
  const rates = cases.map((each) => ({ each, ours: [] as number[], theirs: [] as number[] }))
  const together: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    for (const rate of rates) {
      const turns = [
        async () => rate.ours.push(await ours(caller, rate.each)),
        async () => rate.theirs.push(await theirs(direct, rate.each)),
      ]
      for (const turn of round % 2 === 0 ? turns : turns.reverse()) {
        await untilQuiet()
        await turn()
      }
    }
    await untilQuiet()
    const startedAt = performance.now()
    await both()
    together.push((100 * 1000) / (performance.now() - startedAt))
  }
  const findings = rates.map(({ each, ours, theirs }) => ({
    name: `${each.pages} ${each.name} page${each.pages === 1 ? '' : 's'}`,
    unit: 'pages/s',
    values: ours,
    reference: { name: 'the reader directly', values: theirs },
  }))
  return {
    rounds: ROUNDS,
    findings: [
      ...findings,
      {
        name: 'two documents at once',
        unit: 'pages/s',
        values: together,
        reference: { name: 'the reader directly', values: rates[0]!.theirs },
      },
    ],
    notes: [
      'Ours from POST to answer, with rendering, storing and progress of every page; all pages were read in every run.',
    ],
  }
}

async function prepare(
  caller: Caller,
  folder: string,
  name: string,
  pages: number,
  bytes: Uint8Array,
): Promise<Case> {
  const file = join(folder, `${name}.pdf`)
  writeFileSync(file, bytes)
  const form = new FormData()
  form.set('file', new File([bytes as Uint8Array<ArrayBuffer>], `${name}.pdf`))
  const response = await fetch(`http://127.0.0.1:${caller.port}/api/v1/documents`, {
    method: 'POST',
    body: form,
    headers: { authorization: `Bearer ${caller.token}` },
  })
  if (response.status !== 201) throw new Error(`upload: ${response.status} ${await response.text()}`)
  return { name, pages, bytes, file, documentId: ((await response.json()) as { id: number }).id }
}

/** Pages per second of one extraction through the service. */
async function ours({ port, token }: Caller, { documentId, pages }: Case): Promise<number> {
  const startedAt = performance.now()
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/documents/${documentId}/extract?force=true`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
  })
  const counts = (await response.json()) as { read?: number }
  const ms = performance.now() - startedAt
  if (response.status !== 200 || counts.read !== pages)
    throw new Error(`extract: ${response.status} ${JSON.stringify(counts)}`)
  return (pages * 1000) / ms
}

async function theirs(direct: Child, { file, pages }: Case): Promise<number> {
  const { ms, read } = await direct.ask<{ ms: number; read: number }>(file)
  if (read !== pages) throw new Error(`The reader read ${read} of ${pages} pages`)
  return (pages * 1000) / ms
}
