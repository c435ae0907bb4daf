import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { createChildPool } from '../../workers/children/pool.ts'
import { openDocument } from '../../workers/providers/documents/documents.ts'
import { openPosts } from '../../workers/providers/documents/posts.ts'
import { buildScanPdf, buildTextPdf, createSentences } from '../pdfs.ts'
import { createZip } from '../zip.ts'
import type { Finding, Measured } from './report.ts'
import type { ThreadRequest } from './servers/reading-thread.ts'
import { type Stack, signUp } from './stack.ts'
import { listFamilyPids, readFamilyBytes, startCpuMeter, waitUntilQuiet } from './usage.ts'

/**
 * Compares the CPU time of a child process with a thread that does the same work, per page and post. Also measures the
 * memory of a worker and its children while they read 1,000 pages.
 */

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
const PAGES = Number(process.env.BENCH_PAGES ?? 1000)
const SCANS = PAGES / 25
const IDLE_SECONDS = Number(process.env.BENCH_IDLE_SECONDS ?? 60)
const MIB = 2 ** 20

interface Case {
  readonly name: string
  readonly what: ThreadRequest['what']
  readonly bytes: Uint8Array
  /** Upper bound of the ratio of the child's CPU time to the thread's. */
  readonly maxRatio?: number
}

export async function measureChildren(stack: Stack): Promise<Measured> {
  const posts = Array.from({ length: 1000 }, (_, i) => {
    const text = createSentences(60, i).join('\n\n')
    return [`post-${i}.md`, `---\ntitle: Post ${i}\ndate: 2024-01-02\ntags: [a, b]\n---\n${text}`] as const
  })
  const cases: readonly Case[] = [
    { name: 'a page of text', what: 'document', bytes: await buildTextPdf(200, { sentences: 30 }) },
    {
      name: 'a scanned page',
      what: 'document',
      bytes: await buildScanPdf(Math.ceil(SCANS / 10), { sentences: 30 }),
    },
    { name: 'a post', what: 'posts', bytes: createZip(posts) },
  ]
  const findings = [...(await measureCosts(cases)), ...(await measureMemory(stack))]
  return { rounds: ROUNDS, findings, notes: ['CPU time of this process, its threads and its children.'] }
}

async function measureCosts(cases: readonly Case[]): Promise<readonly Finding[]> {
  const thread = new Worker(new URL('./servers/reading-thread.ts', import.meta.url))
  const pool = createChildPool({ log: { warn: () => {} } as never, concurrency: 1 })
  const { signal } = new AbortController()

  const inThread = async ({ what, bytes }: Case): Promise<number> => {
    thread.postMessage({ what, bytes } satisfies ThreadRequest)
    const [count] = (await once(thread, 'message')) as [number]
    return count
  }
  const inChild = async ({ what, bytes }: Case): Promise<number> => {
    if (what === 'posts') {
      const reader = await openPosts(pool, { name: 'posts.zip', format: 'zip', bytes }, { signal })
      for await (const _ of reader.read());
      reader.close()
      return reader.count
    }
    const options = { mediaType: 'application/pdf', vision: 'tesseract', maxPages: 1000, signal } as const
    const reader = await openDocument(pool, async () => bytes, options)
    for (let n = 1; n <= reader.pageCount; n += 8)
      await Promise.all(
        Array.from({ length: Math.min(8, reader.pageCount - n + 1) }, (_, i) => reader.read(n + i)),
      )
    await reader.close()
    return reader.pageCount
  }
  const cpuMs = async (work: () => Promise<number>): Promise<number> => {
    await waitUntilQuiet()
    const used = startCpuMeter({ all: () => listFamilyPids(process.pid) })
    const count = await work()
    return used().used.all / count
  }
  const findings: Finding[] = []
  for (const each of cases) {
    await inThread(each)
    await inChild(each)
    const values: number[] = []
    const threads: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      values.push(await cpuMs(() => inChild(each)))
      threads.push(await cpuMs(() => inThread(each)))
    }
    findings.push({
      name: each.name,
      unit: 'CPU ms',
      values,
      reference: { name: 'in a thread', values: threads },
    })
  }
  await thread.terminate()
  await pool.close()
  return findings
}

async function measureMemory(stack: Stack): Promise<readonly Finding[]> {
  const url = await stack.createDatabase()
  const edge = await stack.edge(url)
  const { token } = await signUp(edge.port)
  const worker = await stack.worker(url)
  const headers = { authorization: `Bearer ${token}` }
  const base = `http://127.0.0.1:${edge.port}/api/v1/documents`
  const resident = (): number => readFamilyBytes(worker.pid) / MIB
  let max = 0
  const looking = setInterval(() => {
    max = Math.max(max, resident())
  }, 100)
  const documents = [
    await buildTextPdf(PAGES - SCANS, { sentences: 30 }),
    await buildScanPdf(SCANS, { sentences: 10 }),
  ]
  await Promise.all(
    documents.map(async (bytes) => {
      const form = new FormData()
      form.set('file', new File([bytes as Uint8Array<ArrayBuffer>], 'bench.pdf'))
      const uploaded = await fetch(base, { method: 'POST', body: form, headers })
      const { id } = (await uploaded.json()) as { id: number }
      const extracted = await fetch(`${base}/${id}/extract`, { method: 'POST', headers })
      if (extracted.status !== 200) throw new Error(`extract: ${extracted.status} ${await extracted.text()}`)
    }),
  )
  clearInterval(looking)
  await delay(IDLE_SECONDS * 1000)
  return [
    {
      name: `memory over ${PAGES} pages`,
      unit: 'MiB',
      values: [max],
      target: { of: 'value', atMost: 1200 },
    },
    {
      name: `memory ${IDLE_SECONDS} s later`,
      unit: 'MiB',
      values: [resident()],
      target: { of: 'value', atMost: 500 },
    },
  ]
}
