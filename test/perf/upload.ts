import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startChild } from './children.ts'
import type { Finding, Measured } from './report.ts'
import { type Stack, signUp } from './stack.ts'
import { readPeakBytes, readResidentBytes, resetPeak, waitUntilQuiet } from './usage.ts'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
const MB = 1024 * 1024
const LARGE_BYTES = 100 * MB
const SMALL_BYTES = MB
const MAX_RISE_MB = 32
// Number of uploads that warm up the code and open the database pools.
const WARM_UP_UPLOADS = 20

interface Uploaded {
  /** Peak resident memory of the edge during the upload, minus its memory before. */
  readonly riseMb: number
  readonly mbPerSecond: number
}

interface Caller {
  readonly pid: number
  readonly port: number
  readonly token: string
}

/** Measures the memory of the edge and the speed of a 100 MiB upload to each store. A 1 MiB upload is the reference. */
export async function upload(stack: Stack): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-blobs-'))
  const s3 = await startChild(new URL('./servers/s3.ts', import.meta.url), {}, ['--import', 'tsx'])
  const { env } = s3.ready as { env: Readonly<Record<string, string>> }
  const findings: Finding[] = []
  const details: Record<string, unknown> = {}
  try {
    for (const [name, settings] of [
      ['postgres', {}],
      ['file', { BLOB_STORE: `file:${folder}` }],
      ['s3', env],
    ] as const) {
      const { large, small } = await measureUploads(stack, settings)
      findings.push(...toFindings(name, large, small))
      details[name] = { large, small }
    }
  } finally {
    await s3.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  const notes = [
    'Resident memory of the edge process; its peak is the kernel’s value. Every upload has random bytes and ends with 201.',
    'The s3 server (s3rver, Node) writes parts to disk and copies them when an upload completes, which limits the speed here.',
  ]
  return { rounds: ROUNDS, findings, notes, details }
}

async function measureUploads(stack: Stack, settings: Readonly<Record<string, string>>) {
  const url = await stack.createDatabase()
  const [large, small]: [Uploaded[], Uploaded[]] = [[], []]
  for (let round = 0; round < ROUNDS; round++) {
    // Start a new edge each time, because an edge keeps memory after a large upload.
    const edge = await stack.edge(url, settings)
    const { token } = await signUp(edge.port, `round-${round}@example.com`)
    const caller: Caller = { pid: edge.pid, port: edge.port, token }
    for (let i = 0; i < WARM_UP_UPLOADS; i++) await sendUpload(caller, SMALL_BYTES)
    await waitUntilQuiet()
    small.push(await sendUpload(caller, SMALL_BYTES))
    await waitUntilQuiet()
    large.push(await sendUpload(caller, LARGE_BYTES))
    await edge.stop()
  }
  return { large, small }
}

function toFindings(name: string, large: readonly Uploaded[], small: readonly Uploaded[]): Finding[] {
  return [
    {
      name: `${name}: memory increase`,
      unit: 'MiB',
      values: large.map(({ riseMb }) => riseMb),
      reference: { name: '1 MiB upload', values: small.map(({ riseMb }) => riseMb) },
      target: { of: 'value', atMost: MAX_RISE_MB },
    },
    {
      name: `${name}: speed`,
      unit: 'MiB/s',
      values: large.map(({ mbPerSecond }) => mbPerSecond),
      reference: { name: '1 MiB upload', values: small.map(({ mbPerSecond }) => mbPerSecond) },
    },
  ]
}

/** Uploads on a new connection, with a client that is never the bottleneck. */
async function sendUpload({ pid, port, token }: Caller, size: number): Promise<Uploaded> {
  const bytes = randomBytes(size)
  const head = '--b\r\ncontent-disposition: form-data; name="file"; filename="bench.bin"\r\n\r\n'
  const tail = '\r\n--b--\r\n'
  const socket = connect({ host: '127.0.0.1', port, noDelay: true })
  await new Promise((resolve) => socket.once('connect', resolve))
  const before = readResidentBytes(pid)
  resetPeak(pid)
  const startedAt = performance.now()
  socket.write(
    `POST /api/v1/documents HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\nconnection: close\r\n` +
      `content-type: multipart/form-data; boundary=b\r\ncontent-length: ${head.length + size + tail.length}\r\n\r\n${head}`,
  )
  socket.write(bytes)
  socket.write(tail)
  const status = await statusOf(socket)
  const seconds = (performance.now() - startedAt) / 1000
  socket.destroy()
  if (status !== 201) throw new Error(`upload: ${status}`)
  return { riseMb: (readPeakBytes(pid) - before) / MB, mbPerSecond: size / MB / seconds }
}

function statusOf(socket: Socket): Promise<number> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('The edge closed the connection without an answer')))
    socket.once('data', (data) => resolve(Number(data.toString('latin1').split(' ')[1])))
  })
}
