import type { Socket } from 'node:net'
import { isSlow, reportSlow, type SlowStatements } from './slow.ts'

/**
 * A client for PostgreSQL's extended protocol, limited to the needs of hot reads: named statements, text parameters,
 * the first column of the rows. See https://www.postgresql.org/docs/current/protocol-message-formats.html. Reads that
 * arrive in one turn of the event loop go out in one write under one Sync. On a busy connection, each system call thus
 * serves dozens of reads, on both sides. This halves the cost of a read compared with `pg` (measure it with `npm run
 * bench -- reads`).
 */

export interface WireStatement {
  readonly name: string
  readonly text: string
  /** True for a cheap statement that accompanies others. It is never reported as slow. */
  readonly isAuxiliary?: true
}

export type WireValue = string | number | boolean | null | readonly string[] | readonly number[]
export type WireRows = readonly (string | null)[]

/** A server error with the fields that {@link mapDatabaseError} reads. */
export class WireError extends Error {
  readonly code: string
  readonly severity: string
  constructor(fields: ReadonlyMap<string, string>) {
    super(fields.get('M') ?? 'The server reported an error')
    this.name = 'WireError'
    this.code = fields.get('C') ?? ''
    this.severity = fields.get('V') ?? fields.get('S') ?? 'ERROR'
  }
}

interface Read {
  readonly statement: WireStatement
  readonly values: readonly WireValue[]
  readonly resolve: (rows: WireRows) => void
  readonly reject: (error: unknown) => void
  /** The request or job that sent the read; undefined if slow reads are not reported. */
  readonly origin: unknown
  rows: (string | null)[]
  retries: number
}

/** Reads that were sent under one Sync. If one fails, the server skips the rest, which are then resent. */
interface Batch {
  readonly reads: readonly Read[]
  readonly sentAt: number
  /** Number of silence checks since this batch became the oldest one. */
  silenceChecks: number
  /** Number of answered reads. */
  answeredCount: number
  hasFailed: boolean
  /** The last read that failed; null if no read failed. */
  failedRead: Read | null
}

const PARSE_COMPLETE = 0x31
const DATA_ROW = 0x44
const COMMAND_COMPLETE = 0x43
const EMPTY_QUERY = 0x49
const ERROR_RESPONSE = 0x45
const READY_FOR_QUERY = 0x5a
// A larger batch would delay its first reads, because the server answers a batch as a whole.
const MAX_PER_BATCH = 128
// Number of silence checks within the time limit of a batch.
const SILENCE_CHECKS = 5
// SQLSTATEs for a statement that is not prepared, or is already prepared. After an error, the statements that the
// server has prepared can differ from the client's record. If several errors coincide, one read may get these codes
// several times.
const UNKNOWN_STATEMENT_CODE = '26000'
const DUPLICATE_STATEMENT_CODE = '42P05'
const MAX_RETRIES = 10

/** An open, authenticated connection that only serves reads. */
export class Wire {
  /** True if the connection is unusable. */
  isBroken = false
  private readonly socket: Socket
  private readonly statements = new Map<string, 'sent' | 'ready'>()
  private readonly batches: Batch[] = []
  private waiting: Read[] = []
  private isFlushScheduled = false
  private parts: Buffer[] = []
  private receivedBytes = 0
  private neededBytes = 5
  private readonly silenceTimer: NodeJS.Timeout
  private readonly slow: SlowStatements | undefined
  // End of the previous batch. The server answers batches in order, so a batch is timed from here or from its sending,
  // whichever is later.
  private answeredAt = 0

  /**
   * @param answerMs time limit of a batch, after which the connection is closed. Only this limit detects a server or a
   *   network that has stopped responding.
   */
  constructor(socket: Socket, answerMs: number, slow?: SlowStatements) {
    this.socket = socket
    this.slow = slow
    this.silenceTimer = setInterval(() => this.checkSilence(), answerMs / SILENCE_CHECKS).unref()
    socket.on('data', (chunk: Buffer) => this.receive(chunk))
    socket.on('error', (error) => this.break(error))
    socket.on('close', () => this.break(new Error('Connection terminated')))
  }

  read(statement: WireStatement, values: readonly WireValue[]): Promise<WireRows> {
    return new Promise((resolve, reject) => {
      if (this.isBroken) reject(new Error('Connection terminated'))
      else
        this.enqueue({
          statement,
          values,
          resolve,
          reject,
          origin: this.slow?.origin(),
          rows: [],
          retries: 0,
        })
    })
  }

  /** Sends waiting reads, and closes the connection once pending reads are answered. */
  close(): Promise<void> {
    if (this.isBroken) return Promise.resolve()
    const closed = new Promise<void>((resolve) => this.socket.once('close', () => resolve()))
    this.flush()
    this.socket.end(Buffer.from([0x58, 0, 0, 0, 4]))
    return closed
  }

  private enqueue(read: Read): void {
    this.waiting.push(read)
    if (this.isFlushScheduled) return
    this.isFlushScheduled = true
    // Flush after the poll phase, when all requests of this turn have arrived.
    setImmediate(() => this.flush())
  }

  private flush(): void {
    this.isFlushScheduled = false
    while (this.waiting.length > 0 && !this.isBroken) {
      const reads = this.waiting.length <= MAX_PER_BATCH ? this.waiting : this.waiting.slice(0, MAX_PER_BATCH)
      this.waiting = reads === this.waiting ? [] : this.waiting.slice(MAX_PER_BATCH)
      this.send(reads)
    }
  }

  private send(reads: readonly Read[]): void {
    const out = new MessageBuffer()
    for (const { statement, values } of reads) {
      if (!this.statements.has(statement.name)) {
        this.statements.set(statement.name, 'sent')
        out.parse(statement)
      }
      out.bindAndExecute(statement.name, values)
    }
    out.sync()
    this.batches.push({
      reads,
      sentAt: performance.now(),
      silenceChecks: 0,
      answeredCount: 0,
      hasFailed: false,
      failedRead: null,
    })
    this.socket.write(out.bytes())
  }

  private receive(chunk: Buffer): void {
    this.parts.push(chunk)
    this.receivedBytes += chunk.length
    // Assemble a long message only when it is complete. Assembling it with each chunk would take quadratic time.
    if (this.receivedBytes < this.neededBytes) return
    const data = this.parts.length === 1 ? chunk : Buffer.concat(this.parts, this.receivedBytes)
    let at = 0
    this.neededBytes = 5
    while (data.length - at >= 5) {
      const end = at + 1 + data.readInt32BE(at + 1)
      if (end > data.length) {
        this.neededBytes = end - at
        break
      }
      this.handleMessage(data[at]!, data, at + 5, end)
      at = end
    }
    this.parts = at === data.length ? [] : [data.subarray(at)]
    this.receivedBytes = data.length - at
  }

  private handleMessage(type: number, data: Buffer, start: number, end: number): void {
    const batch = this.batches[0]
    if (batch === undefined) return
    const read = batch.reads[batch.answeredCount]
    switch (type) {
      case DATA_ROW: {
        const length = data.readInt32BE(start + 2)
        read!.rows.push(length === -1 ? null : data.toString('utf8', start + 6, start + 6 + length))
        return
      }
      case COMMAND_COMPLETE:
      case EMPTY_QUERY:
        batch.answeredCount++
        read!.resolve(read!.rows)
        return
      case PARSE_COMPLETE:
        this.statements.set(read!.statement.name, 'ready')
        return
      case ERROR_RESPONSE:
        this.handleError(batch, read, new WireError(parseErrorFields(data, start, end)))
        return
      case READY_FOR_QUERY:
        this.batches.shift()
        if (this.slow !== undefined) this.reportIfSlow(this.slow, batch)
        if (batch.hasFailed) this.resend(batch)
    }
  }

  private handleError(batch: Batch, read: Read | undefined, error: WireError): void {
    batch.hasFailed = true
    // A server that shuts down sends this error and closes the connection.
    if (error.severity === 'FATAL' || error.severity === 'PANIC' || read === undefined) {
      this.break(error)
      return
    }
    for (const [name, state] of this.statements) if (state === 'sent') this.statements.delete(name)
    if (
      (error.code === UNKNOWN_STATEMENT_CODE || error.code === DUPLICATE_STATEMENT_CODE) &&
      read.retries < MAX_RETRIES
    ) {
      if (error.code === UNKNOWN_STATEMENT_CODE) this.statements.delete(read.statement.name)
      else this.statements.set(read.statement.name, 'ready')
      read.retries++
      return
    }
    batch.answeredCount++
    batch.failedRead = read
    read.reject(error)
  }

  /**
   * Reports a slow batch. The server answers a batch as a whole, so the slow statement is known only if it exceeded the
   * server's time limit. Otherwise all statements of the batch are reported.
   */
  private reportIfSlow(slow: SlowStatements, { reads, sentAt, failedRead }: Batch): void {
    const now = performance.now()
    const ms = now - Math.max(sentAt, this.answeredAt)
    this.answeredAt = now
    if (!isSlow(slow, ms)) return
    const suspects =
      failedRead === null ? reads.filter(({ statement }) => statement.isAuxiliary !== true) : [failedRead]
    const byName = new Map(suspects.map((read) => [read.statement.name, read]))
    for (const { statement, origin } of byName.values())
      reportSlow(slow, statement, ms, origin, suspects.length)
  }

  /** Resends the reads that the server skipped after an error, each under its own Sync. */
  private resend(batch: Batch): void {
    for (const read of batch.reads.slice(batch.answeredCount)) {
      read.rows = []
      this.send([read])
    }
  }

  private checkSilence(): void {
    // Count checks instead of measuring time. After a freeze of this process, arrived data is then read before the next
    // check.
    const oldest = this.batches[0]
    if (oldest !== undefined && ++oldest.silenceChecks > SILENCE_CHECKS)
      this.break(new Error('Connection terminated: the server does not answer'))
  }

  private break(error: Error): void {
    if (this.isBroken) return
    this.isBroken = true
    clearInterval(this.silenceTimer)
    this.socket.destroy()
    const [batch] = this.batches
    if (this.slow !== undefined && batch !== undefined) this.reportIfSlow(this.slow, batch)
    const unanswered = [
      ...this.batches.flatMap(({ reads, answeredCount }) => reads.slice(answeredCount)),
      ...this.waiting,
    ]
    this.batches.length = 0
    this.waiting = []
    for (const read of unanswered) read.reject(error)
  }
}

/** Collects outgoing messages in one growing buffer. */
class MessageBuffer {
  private buffer = Buffer.allocUnsafe(8192)
  private offset = 0

  parse({ name, text }: WireStatement): void {
    const size = 4 + Buffer.byteLength(name) + 1 + Buffer.byteLength(text) + 1 + 2
    this.reserve(size + 1)
    this.writeHeader(0x50, size)
    this.writeString(name)
    this.writeString(text)
    this.writeInt16(0)
  }

  bindAndExecute(name: string, values: readonly WireValue[]): void {
    const texts = values.map(encodeText)
    let size = 4 + 1 + Buffer.byteLength(name) + 1 + 2 + 2 + 2
    for (const text of texts) size += 4 + (text === null ? 0 : Buffer.byteLength(text))
    this.reserve(size + 1 + 10)
    this.writeHeader(0x42, size)
    this.buffer[this.offset++] = 0
    this.writeString(name)
    this.writeInt16(0)
    this.writeInt16(texts.length)
    for (const text of texts) this.writeValue(text)
    this.writeInt16(0)
    this.writeHeader(0x45, 9)
    this.buffer[this.offset++] = 0
    this.writeInt32(0)
  }

  sync(): void {
    this.reserve(5)
    this.writeHeader(0x53, 4)
  }

  bytes(): Buffer {
    return this.buffer.subarray(0, this.offset)
  }

  private reserve(size: number): void {
    if (this.offset + size <= this.buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.buffer.length * 2, this.offset + size))
    this.buffer.copy(larger, 0, 0, this.offset)
    this.buffer = larger
  }

  private writeHeader(type: number, size: number): void {
    this.buffer[this.offset++] = type
    this.writeInt32(size)
  }

  private writeInt16(value: number): void {
    this.offset = this.buffer.writeInt16BE(value, this.offset)
  }

  private writeInt32(value: number): void {
    this.offset = this.buffer.writeInt32BE(value, this.offset)
  }

  private writeString(value: string): void {
    this.offset += this.buffer.write(value, this.offset)
    this.buffer[this.offset++] = 0
  }

  private writeValue(text: string | null): void {
    const length = text === null ? -1 : this.buffer.write(text, this.offset + 4)
    this.writeInt32(length)
    this.offset += Math.max(length, 0)
  }
}

function encodeText(value: WireValue): string | null {
  if (value === null) return null
  if (typeof value === 'string') return value
  if (typeof value !== 'object') return String(value)
  return `{${value.map((item) => (typeof item === 'number' ? item : `"${item.replace(/["\\]/g, '\\$&')}"`)).join(',')}}`
}

/** Parses the fields of an ErrorResponse. Each is a letter and a zero-terminated text; a zero byte ends the list. */
function parseErrorFields(data: Buffer, start: number, end: number): Map<string, string> {
  const fields = new Map<string, string>()
  for (let at = start; at < end && data[at] !== 0; ) {
    const zero = data.indexOf(0, at + 1)
    fields.set(String.fromCharCode(data[at]!), data.toString('utf8', at + 1, zero))
    at = zero + 1
  }
  return fields
}
