/**
 * Messages of PostgreSQL's wire protocol, as the pooler reads and writes them
 * (https://www.postgresql.org/docs/current/protocol-message-formats.html).
 */

export interface Message {
  /** Type letter; '' for the startup message, which has none. */
  readonly type: string
  readonly whole: Buffer
  readonly body: Buffer
}

/** Splits a socket's data into messages. */
export class MessageSplitter {
  /** True if the next message has a type letter; a client's startup messages have none. */
  lettered: boolean
  private rest: Buffer = Buffer.alloc(0)

  constructor(lettered: boolean) {
    this.lettered = lettered
  }

  push(chunk: Buffer): void {
    this.rest = Buffer.concat([this.rest, chunk])
  }

  /** Returns the next complete message; null if it has not arrived yet. */
  next(): Message | null {
    const head = this.lettered ? 1 : 0
    if (this.rest.length < head + 4) return null
    const end = head + this.rest.readInt32BE(head)
    if (this.rest.length < end) return null
    const whole = this.rest.subarray(0, end)
    this.rest = this.rest.subarray(end)
    return { type: whole.toString('latin1', 0, head), whole, body: whole.subarray(head + 4) }
  }
}

export function createMessage(type: string, ...parts: readonly (string | Buffer)[]): Buffer {
  const body = Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)))
  const head = Buffer.alloc(5)
  head.write(type, 'latin1')
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

export function encodeInt32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

/** Returns the string up to the next zero byte, and the bytes after that byte. */
export function readTextAt(body: Buffer, at = 0): [text: string, rest: Buffer] {
  const zero = body.indexOf(0, at)
  return [body.toString('utf8', at, zero), body.subarray(zero + 1)]
}

/** Returns the parameters of a client's startup message. */
export function parseParameters(startup: Buffer): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (let rest = startup.subarray(4); rest.length > 1; ) {
    const [name, more] = readTextAt(rest)
    const [value, after] = readTextAt(more)
    found.set(name, value)
    rest = after
  }
  return found
}

/** Creates an error message that ends the connection. */
export const createFatalError = (text: string): Buffer =>
  createMessage('E', `SFATAL\0VFATAL\0C08P01\0M${text}\0\0`)
