import type { Body } from './body.ts'
import { Chunks } from './chunks.ts'
import { EventStream } from './events.ts'
import { isBodiless, JSON_BLOCK } from './head.ts'
import { Pieces } from './pieces.ts'
import { endOrHold, type Rest } from './rest.ts'
import type {
  BodyWriter,
  ChunkWriter,
  EventSink,
  NativeResponse,
  Reply,
  ReplyHead,
  Responder,
  Shared,
} from './types.ts'

/** If at most this much of an unread body is outstanding, an early response waits for it, to keep the connection. */
const WAIT_FOR_REST = 64 * 1024
/** How long reading goes on after an early response to a larger body before the connection is cut, as in nginx. */
const LINGER_MS = 30_000
/** The time in ms to read on after a request whose end is unknown, as in Apache. */
const LINGER_MISFRAMED_MS = 2_000
/**
 * Follows a connection's last answer. As much as uWS's cork buffer takes, so that uWS sends the answer immediately. It
 * would lose an answer in that buffer if its parser, which may still run, then met bytes that it refuses.
 */
const FLUSH = Buffer.alloc(16 * 1024, '\r\n')
/**
 * One in this many responses without a body closes its connection: uWS silently buffers what the kernel did not take of
 * them (see rest.ts), and this bounds what piles up for a client that never reads.
 */
const BODILESS = 1024

/**
 * Up to this size, end() closes the connection with the last answer, since the kernel takes it all. What it does not take of
 * a larger one has to be known: the process must not end before the client has it.
 */
const END_UP_TO = 16 * 1024

const INTERNAL: Reply = {
  status: 500,
  block: JSON_BLOCK,
  headers: [],
  body: '{"detail":"Internal error"}',
}

/**
 * The response side of one request. Only this class uses `res` to respond, because `res` throws after the response and
 * after an abort; `state` says whether it may be used. Everything is sent in corked writes.
 */
export class UwsExchange implements Responder {
  /** The body of the request, if it has one. */
  incoming: Body | undefined = undefined
  /** The end of the request is ambiguous: whatever follows it on the connection is not read. */
  isLast = false
  /** True while uWS's own handler runs, during which the socket is already corked. */
  corked = true
  private readonly res: NativeResponse
  private readonly shared: Shared
  private bodyBytes = 0
  private state: 'open' | 'answered' | 'streaming' | 'gone' = 'open'
  private stream: EventStream | Pieces | Chunks | Rest | undefined = undefined
  private closeListeners: (() => void)[] | undefined = undefined
  private linger: NodeJS.Timeout | undefined = undefined

  constructor(res: NativeResponse, shared: Shared) {
    // Before anything that could throw: a handler that returns without onAborted or a response ends the process.
    res.onAborted(() => this.aborted())
    this.res = res
    this.shared = shared
  }

  get done(): boolean {
    return this.state !== 'open'
  }

  get bytes(): number {
    return this.bodyBytes + (this.stream?.bytes ?? 0)
  }

  onClose(listener: () => void): void {
    if (this.state === 'gone') queueMicrotask(() => this.call(listener))
    else if (this.closeListeners === undefined) this.closeListeners = [listener]
    else this.closeListeners.push(listener)
  }

  send(reply: Reply): void {
    if (this.state !== 'open') return
    const text = this.shared.heads.text(reply)
    this.state = 'answered'
    if (reply.head !== true && reply.body !== undefined) this.bodyBytes = Buffer.byteLength(reply.body)
    const { incoming } = this
    if (this.isLast) {
      this.answerAndLinger(text, reply, LINGER_MISFRAMED_MS)
    } else if (incoming === undefined || incoming.complete) {
      incoming?.forget()
      this.answer(text, reply)
    } else this.answerEarly(incoming, text, reply)
  }

  body(head: ReplyHead, totalBytes: number): BodyWriter {
    const text = this.headOf(head)
    const pieces = new Pieces(this.res, text, totalBytes, this.state === 'open')
    if (this.state !== 'open') return pieces
    if (totalBytes === 0) this.send({ ...head, body: '' })
    else this.begin(pieces)
    return pieces
  }

  chunks(head: ReplyHead): ChunkWriter {
    const text = this.headOf(head)
    const chunks = new Chunks(this.res, text, this.state === 'open')
    if (this.state === 'open') this.begin(chunks)
    return chunks
  }

  events(head: ReplyHead, first?: Uint8Array | string): EventSink {
    const text = this.headOf(head)
    if (this.state !== 'open') return new EventStream(this.res, this.shared, undefined)
    const stream = new EventStream(this.res, this.shared, text, first)
    this.begin(stream)
    return stream
  }

  /** Handles what the handler threw. The client learns that something went wrong, but not what. */
  failed(error: unknown): void {
    this.shared.onError(error)
    if (this.state === 'open') this.send(INTERNAL)
    else if (this.state === 'streaming') this.cut()
  }

  /** The head of a response in pieces. */
  private headOf(head: ReplyHead): string {
    const text = this.shared.heads.text(head)
    return this.shared.leaving ? `${text}\r\nConnection: close` : text
  }

  private begin(stream: EventStream | Pieces | Chunks): void {
    this.state = 'streaming'
    this.stream = stream
    this.incoming?.discard()
  }

  private answer(text: string, reply: Reply): void {
    if (this.corked) this.write(text, reply)
    else this.res.cork(() => this.write(text, reply))
  }

  private write(text: string, reply: Reply): void {
    const { res, shared } = this
    const { body = '' } = reply
    const bodiless = reply.head === true || isBodiless(reply.status)
    const empty = bodiless || body.length === 0
    if (empty && !shared.leaving && ++shared.bodiless % BODILESS === 0) {
      this.answerAndLinger(text, reply, LINGER_MS)
      return
    }
    res.writeStatus(text)
    if (bodiless) this.writeBodiless(reply)
    else if (body.length === 0 || (shared.leaving && this.bodyBytes <= END_UP_TO))
      res.end(body, shared.leaving)
    else {
      this.sayThatItCloses()
      this.stream = endOrHold(res, shared, body)
    }
  }

  /** Only end() can close the connection; after other calls, the client does. */
  private sayThatItCloses(): void {
    if (this.shared.leaving) this.res.writeHeader('Connection', 'close')
  }

  private writeBodiless({ head, body }: Reply): void {
    const { res } = this
    this.sayThatItCloses()
    // Written by hand: endWithoutBody(length) leaves the response pending in this core.
    if (head === true && body !== undefined)
      res.writeHeader('Content-Length', String(Buffer.byteLength(body)))
    res.endWithoutBody()
  }

  /**
   * Responds to a request whose body has not fully arrived. Closing with unread bytes makes the kernel send a reset, so
   * that clients that send first and read later lose the response; therefore the rest of the body is read and dropped.
   */
  private answerEarly(incoming: Body, text: string, reply: Reply): void {
    const late = incoming.remaining > WAIT_FOR_REST
    if (late) this.answerAndLinger(text, reply, LINGER_MS)
    incoming.onComplete = () => {
      if (this.state === 'gone') return
      if (late) this.cut()
      else this.res.cork(() => this.write(text, reply))
    }
    incoming.discard()
  }

  /**
   * Sends the whole response as if it were a status line, since end() would release `res` and with it the means to
   * close. The line breaks come after the body, where clients ignore them (`Connection: close`).
   */
  private answerAndLinger(text: string, reply: Reply, lingerMs: number): void {
    const { body: whatever = '', head: headOnly = false } = reply
    const unknown = isBodiless(reply.status) || (headOnly && reply.body === undefined)
    const length = unknown ? '' : `\r\nContent-Length: ${Buffer.byteLength(whatever)}`
    const head = Buffer.from(`${text}${length}\r\nConnection: close\r\n\r\n`)
    const body = Buffer.from((headOnly ? '' : whatever) as string)
    this.res.cork(() => this.res.writeStatus(Buffer.concat([head, body, FLUSH])))
    this.linger = setTimeout(() => this.cut(), lingerMs)
  }

  /** Not at once: uWS's parser would read on in a socket closed under it. */
  private cut(): void {
    setImmediate(() => {
      if (this.state !== 'gone' && this.stream?.closed !== true) this.res.close()
    })
  }

  private aborted(): void {
    this.state = 'gone'
    clearTimeout(this.linger)
    this.incoming?.leave()
    if (this.stream !== undefined) this.call(() => this.stream?.leave())
    const listeners = this.closeListeners
    if (listeners === undefined || this.linger !== undefined) return
    this.closeListeners = undefined
    for (const listener of listeners) this.call(listener)
  }

  private call(listener: () => void): void {
    try {
      listener()
    } catch (error) {
      this.shared.onError(error)
    }
  }
}
