import type { Socket } from 'node:net'
import { isSlow, type SlowStatements, tellSlow } from './slow.ts'

/**
 * PostgreSQL's extended protocol (https://www.postgresql.org/docs/current/protocol-message-formats.html), as far as the
 * hot reads need it: named statements, text parameters, the first column of the rows. Reads that arrive in one turn of
 * the event loop are sent in one write and under one Sync, so a busy connection spends its system calls on dozens of
 * reads at a time, here and in the server. That halves the cost of a read compared with `pg`, and is why this exists
 * (figures: `npm run bench -- reads`).
 */

export interface WireStatement {
  readonly name: string
  readonly text: string
  /** It only goes with others and costs nothing of its own, so that it is never what was slow. */
  readonly isAside?: true
}

export type WireValue = string | number | boolean | null | readonly string[] | readonly number[]
export type WireRows = readonly (string | null)[]

/** An error that the server reported, with the fields that {@link mapDatabaseError} looks at. */
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
  /** What it is read for, while slow reads are told. */
  readonly origin: unknown
  rows: (string | null)[]
  retries: number
}

/** Reads sent under one Sync: an error in one makes the server skip the rest, which are then sent again. */
interface Batch {
  readonly reads: readonly Read[]
  readonly sentAt: number
  /** How many times it has been checked while it was the oldest. */
  looks: number
  /** How many have been answered. */
  done: number
  failed: boolean
  /** The last one that had an error. */
  culprit: Read | null
}

const PARSE_COMPLETE = 0x31
const DATA_ROW = 0x44
const COMMAND_COMPLETE = 0x43
const EMPTY_QUERY = 0x49
const ERROR_RESPONSE = 0x45
const READY_FOR_QUERY = 0x5a
// More would make the first of them wait for the last.
const MAX_PER_BATCH = 128
// How many times the oldest batch is checked within its time limit.
const LOOKS = 5
// After an error, the statements that the server knows can differ from what we assume; it then reports one of these.
// When several errors coincide, one read may get them several times.
const UNKNOWN_STATEMENT = '26000'
const KNOWN_STATEMENT = '42P05'
const MAX_RETRIES = 10

/** A connection that has been opened and authenticated, and does nothing but reads from here on. */
export class Wire {
  /** Set once the connection is unusable. */
  broken = false
  private readonly socket: Socket
  private readonly statements = new Map<string, 'sent' | 'ready'>()
  private readonly batches: Batch[] = []
  private waiting: Read[] = []
  private scheduled = false
  private parts: Buffer[] = []
  private received = 0
  private needed = 5
  private readonly watch: NodeJS.Timeout
  private readonly slow: SlowStatements | undefined
  // Batches are answered one after the other: the time of one begins when it is sent, or when that before it has ended.
  private answeredAt = 0

  /**
   * @param answerMs how long the server may take for a batch before the connection is given up: one that has stopped
   *   answering, or a network that has, is found out by nothing else.
   */
  constructor(socket: Socket, answerMs: number, slow?: SlowStatements) {
    this.socket = socket
    this.slow = slow
    this.watch = setInterval(() => this.lookForSilence(), answerMs / LOOKS).unref()
    socket.on('data', (chunk: Buffer) => this.receive(chunk))
    socket.on('error', (error) => this.break(error))
    socket.on('close', () => this.break(new Error('Connection terminated')))
  }

  read(statement: WireStatement, values: readonly WireValue[]): Promise<WireRows> {
    return new Promise((resolve, reject) => {
      if (this.broken) reject(new Error('Connection terminated'))
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

  /** Sends what is waiting, lets pending reads be answered, and terminates the connection. */
  close(): Promise<void> {
    if (this.broken) return Promise.resolve()
    const closed = new Promise<void>((resolve) => this.socket.once('close', () => resolve()))
    this.flush()
    this.socket.end(Buffer.from([0x58, 0, 0, 0, 4]))
    return closed
  }

  private enqueue(read: Read): void {
    this.waiting.push(read)
    if (this.scheduled) return
    this.scheduled = true
    // After the poll phase, when all requests that arrived in it are here.
    setImmediate(() => this.flush())
  }

  private flush(): void {
    this.scheduled = false
    while (this.waiting.length > 0 && !this.broken) {
      const reads = this.waiting.length <= MAX_PER_BATCH ? this.waiting : this.waiting.slice(0, MAX_PER_BATCH)
      this.waiting = reads === this.waiting ? [] : this.waiting.slice(MAX_PER_BATCH)
      this.send(reads)
    }
  }

  private send(reads: readonly Read[]): void {
    const out = new Outgoing()
    for (const { statement, values } of reads) {
      if (!this.statements.has(statement.name)) {
        this.statements.set(statement.name, 'sent')
        out.parse(statement)
      }
      out.bindAndExecute(statement.name, values)
    }
    out.sync()
    this.batches.push({ reads, sentAt: performance.now(), looks: 0, done: 0, failed: false, culprit: null })
    this.socket.write(out.bytes())
  }

  private receive(chunk: Buffer): void {
    this.parts.push(chunk)
    this.received += chunk.length
    // A long message is assembled once, when it is complete: doing so with each piece would cost its length squared.
    if (this.received < this.needed) return
    const data = this.parts.length === 1 ? chunk : Buffer.concat(this.parts, this.received)
    let at = 0
    this.needed = 5
    while (data.length - at >= 5) {
      const end = at + 1 + data.readInt32BE(at + 1)
      if (end > data.length) {
        this.needed = end - at
        break
      }
      this.message(data[at]!, data, at + 5, end)
      at = end
    }
    this.parts = at === data.length ? [] : [data.subarray(at)]
    this.received = data.length - at
  }

  private message(type: number, data: Buffer, start: number, end: number): void {
    const batch = this.batches[0]
    if (batch === undefined) return
    const read = batch.reads[batch.done]
    switch (type) {
      case DATA_ROW: {
        const length = data.readInt32BE(start + 2)
        read!.rows.push(length === -1 ? null : data.toString('utf8', start + 6, start + 6 + length))
        return
      }
      case COMMAND_COMPLETE:
      case EMPTY_QUERY:
        batch.done++
        read!.resolve(read!.rows)
        return
      case PARSE_COMPLETE:
        this.statements.set(read!.statement.name, 'ready')
        return
      case ERROR_RESPONSE:
        this.failed(batch, read, new WireError(fieldsOf(data, start, end)))
        return
      case READY_FOR_QUERY:
        this.batches.shift()
        if (this.slow !== undefined) this.answered(this.slow, batch)
        if (batch.failed) this.again(batch)
    }
  }

  private failed(batch: Batch, read: Read | undefined, error: WireError): void {
    batch.failed = true
    // A server that shuts down says so, and closes the connection.
    if (error.severity === 'FATAL' || error.severity === 'PANIC' || read === undefined) {
      this.break(error)
      return
    }
    for (const [name, state] of this.statements) if (state === 'sent') this.statements.delete(name)
    if ((error.code === UNKNOWN_STATEMENT || error.code === KNOWN_STATEMENT) && read.retries < MAX_RETRIES) {
      if (error.code === UNKNOWN_STATEMENT) this.statements.delete(read.statement.name)
      else this.statements.set(read.statement.name, 'ready')
      read.retries++
      return
    }
    batch.done++
    batch.culprit = read
    read.reject(error)
  }

  /**
   * Tells of a batch that took long. The server answers a batch as a whole: which of its statements was slow shows only
   * where one has exceeded the server's limit.
   */
  private answered(slow: SlowStatements, { reads, sentAt, culprit }: Batch): void {
    const now = performance.now()
    const ms = now - Math.max(sentAt, this.answeredAt)
    this.answeredAt = now
    if (!isSlow(slow, ms)) return
    const suspects =
      culprit === null ? reads.filter(({ statement }) => statement.isAside !== true) : [culprit]
    const byName = new Map(suspects.map((read) => [read.statement.name, read]))
    for (const { statement, origin } of byName.values())
      tellSlow(slow, statement, ms, origin, suspects.length)
  }

  /** Sends again what an error made the server skip, each under a Sync of its own. */
  private again(batch: Batch): void {
    for (const read of batch.reads.slice(batch.done)) {
      read.rows = []
      this.send([read])
    }
  }

  private lookForSilence(): void {
    // Checks are counted instead of time: a process that was frozen reads what has arrived before it checks again.
    const oldest = this.batches[0]
    if (oldest !== undefined && ++oldest.looks > LOOKS)
      this.break(new Error('Connection terminated: the server does not answer'))
  }

  private break(error: Error): void {
    if (this.broken) return
    this.broken = true
    clearInterval(this.watch)
    this.socket.destroy()
    const [batch] = this.batches
    if (this.slow !== undefined && batch !== undefined) this.answered(this.slow, batch)
    const lost = [...this.batches.flatMap(({ reads, done }) => reads.slice(done)), ...this.waiting]
    this.batches.length = 0
    this.waiting = []
    for (const read of lost) read.reject(error)
  }
}

/** Outgoing messages, in one growing buffer. */
class Outgoing {
  private buffer = Buffer.allocUnsafe(8192)
  private at = 0

  parse({ name, text }: WireStatement): void {
    const size = 4 + Buffer.byteLength(name) + 1 + Buffer.byteLength(text) + 1 + 2
    this.reserve(size + 1)
    this.header(0x50, size)
    this.text(name)
    this.text(text)
    this.int16(0)
  }

  bindAndExecute(name: string, values: readonly WireValue[]): void {
    const texts = values.map(textOf)
    let size = 4 + 1 + Buffer.byteLength(name) + 1 + 2 + 2 + 2
    for (const text of texts) size += 4 + (text === null ? 0 : Buffer.byteLength(text))
    this.reserve(size + 1 + 10)
    this.header(0x42, size)
    this.buffer[this.at++] = 0
    this.text(name)
    this.int16(0)
    this.int16(texts.length)
    for (const text of texts) this.value(text)
    this.int16(0)
    this.header(0x45, 9)
    this.buffer[this.at++] = 0
    this.int32(0)
  }

  sync(): void {
    this.reserve(5)
    this.header(0x53, 4)
  }

  bytes(): Buffer {
    return this.buffer.subarray(0, this.at)
  }

  private reserve(size: number): void {
    if (this.at + size <= this.buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.buffer.length * 2, this.at + size))
    this.buffer.copy(larger, 0, 0, this.at)
    this.buffer = larger
  }

  private header(type: number, size: number): void {
    this.buffer[this.at++] = type
    this.int32(size)
  }

  private int16(value: number): void {
    this.at = this.buffer.writeInt16BE(value, this.at)
  }

  private int32(value: number): void {
    this.at = this.buffer.writeInt32BE(value, this.at)
  }

  private text(value: string): void {
    this.at += this.buffer.write(value, this.at)
    this.buffer[this.at++] = 0
  }

  private value(text: string | null): void {
    const length = text === null ? -1 : this.buffer.write(text, this.at + 4)
    this.int32(length)
    this.at += Math.max(length, 0)
  }
}

function textOf(value: WireValue): string | null {
  if (value === null) return null
  if (typeof value === 'string') return value
  if (typeof value !== 'object') return String(value)
  return `{${value.map((item) => (typeof item === 'number' ? item : `"${item.replace(/["\\]/g, '\\$&')}"`)).join(',')}}`
}

/** The fields of an ErrorResponse: a letter and a text each, until a zero. */
function fieldsOf(data: Buffer, start: number, end: number): Map<string, string> {
  const fields = new Map<string, string>()
  for (let at = start; at < end && data[at] !== 0; ) {
    const zero = data.indexOf(0, at + 1)
    fields.set(String.fromCharCode(data[at]!), data.toString('utf8', at + 1, zero))
    at = zero + 1
  }
  return fields
}
