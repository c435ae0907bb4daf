import { createHmac } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { percentile } from '../stats.ts'
import { listFamilyPids, startCpuMeter } from '../usage.ts'
import type { LoadOrder, LoadResult } from './load.ts'

/**
 * A load generator that keeps raw keep-alive connections busy, each with one request at a time, and checks every
 * answer. It must be lean, because it shares the machine with the measured processes.
 */

interface Run {
  readonly order: LoadOrder
  next: number
  measuring: boolean
  stopping: boolean
  readonly latencies: number[]
  answered: number
  wrong: string | null
  bytes: number
}

const CONTENT_LENGTH = /\r\ncontent-length: *(\d+)/i

process.on('message', (order: LoadOrder) => {
  runOrder(order).then(
    (result) => process.send!({ result }),
    (error: Error) => process.send!({ error: error.stack ?? String(error) }),
  )
})
process.on('disconnect', () => process.exit())
process.send!({})

async function runOrder(order: LoadOrder): Promise<LoadResult> {
  const run: Run = {
    order,
    next: order.ids?.[0] ?? 0,
    measuring: false,
    stopping: false,
    latencies: [],
    answered: 0,
    wrong: null,
    bytes: 0,
  }
  const connections = Array.from({ length: order.connections }, () => keepBusy(run))
  await delay(order.warmMs)
  const meter = startCpuMeter({
    server: () => order.serverPids,
    postgres: () => (order.postmaster === null ? [] : listFamilyPids(order.postmaster)),
    generator: () => [process.pid],
  })
  const startedAt = performance.now()
  run.measuring = true
  await Promise.race([delay(order.measureMs), Promise.all(connections)])
  run.measuring = false
  const seconds = (performance.now() - startedAt) / 1000
  const { used, foreign } = meter()
  const perRequest = (ms: number): number => (ms * 1000) / run.latencies.length
  run.stopping = true
  await Promise.all(connections)
  if (run.wrong !== null) throw new Error(run.wrong)
  const { latencies } = run
  return {
    perSecond: latencies.length / seconds,
    p50: percentile(latencies, 0.5),
    p95: percentile(latencies, 0.95),
    p99: percentile(latencies, 0.99),
    answered: run.answered,
    cpuMicroseconds: {
      server: perRequest(used.server),
      postgres: perRequest(used.postgres),
      generator: perRequest(used.generator),
    },
    foreignCores: foreign / (seconds * 1000),
    bodyBytes: run.bytes,
  }
}

/** Sends requests on one connection until the run stops, its ids are used up or an answer is wrong. */
function keepBusy(run: Run): Promise<void> {
  return new Promise((resolve, reject) => {
    let rest = ''
    let sentAt = 0
    const send = (): void => {
      const text = run.stopping || run.wrong !== null ? null : nextRequest(run)
      if (text === null) {
        socket.destroy()
        resolve()
        return
      }
      sentAt = performance.now()
      socket.write(text, 'latin1')
    }
    const receive = (length: number, buffer: Uint8Array): boolean => {
      const text = rest + (buffer as Buffer).toString('latin1', 0, length)
      const whole = checkAnswer(run, text)
      rest = whole ? '' : text
      if (whole) {
        if (run.measuring) run.latencies.push(performance.now() - sentAt)
        run.answered++
        if (run.order.pauseMs > 0) setTimeout(send, run.order.pauseMs)
        else send()
      }
      return true
    }
    const socket: Socket = connect({
      host: '127.0.0.1',
      port: run.order.port,
      noDelay: true,
      onread: { buffer: Buffer.allocUnsafe(65_536), callback: receive },
    })
    socket.once('connect', send)
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('The server closed a connection')))
  })
}

function nextRequest(run: Run): string | null {
  const { head, tail, ids, signed } = run.order
  if (ids === null) return head
  if (run.next > ids[1]) return null
  const id = run.next++
  return signed === null ? `${head}${id}${tail}` : `${head}${buildSignedBody(signed, id)}`
}

/** Returns the last headers of a signed request, and its body. */
function buildSignedBody({ body, secret }: NonNullable<LoadOrder['signed']>, id: number): string {
  const text = body.replaceAll('{id}', String(id))
  const at = Math.floor(Date.now() / 1000)
  const mac = createHmac('sha256', secret).update(`${at}.${text}`).digest('hex')
  return `content-length: ${text.length}\r\nstripe-signature: t=${at},v1=${mac}\r\n\r\n${text}`
}

/** True if an answer is complete. Records unexpected answers in `run.wrong`. */
function checkAnswer(run: Run, text: string): boolean {
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd === -1) return false
  const length = Number(CONTENT_LENGTH.exec(text)?.[1] ?? Number.NaN)
  const bodyLength = text.length - headEnd - 4
  if (bodyLength < length) return false
  const { status, bodyBytes } = run.order
  run.bytes = length
  const right =
    text.startsWith(`HTTP/1.1 ${status}`) &&
    bodyLength === length &&
    (bodyBytes === null || bodyBytes === length)
  if (!right) run.wrong ??= `Unexpected answer: ${text.slice(0, 600)}`
  return true
}
