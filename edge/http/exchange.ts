import type { Body } from './body.ts'
import { Chunks } from './chunks.ts'
import { EventStream } from './events.ts'
import { headText, isBodiless } from './head.ts'
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

/** An unread body of at most this rest is waited for, so that the connection lives on after an early answer. */
const WAIT_FOR_REST = 64 * 1024
/** How long an early answer to a larger body is followed by reading on before the cut, as nginx does. */
const LINGER_MS = 30_000
/**
 * Of answers without a body every so many-th is its connection's last: what the kernel did not take of them uWS buffers
 * and does not tell (see rest.ts), and this bounds what a client piles up that asks so and never reads.
 */
const BODILESS = 1024

const INTERNAL: Reply = {
  status: 500,
  headers: [['content-type', 'application/json']],
  body: '{"detail":"Internal error"}',
}

/**
 * The answering side of one request. It alone touches `res` for answers, because `res` throws after the answer and after
 * an abort: `state` says whether it may be touched. Everything leaves in corked writes.
 */
export class UwsExchange implements Responder {
  /** The body of the request, when it has one. */
  incoming: Body | undefined = undefined
  /** Nobody can be sure where the request ends: what follows it on the connection is not read. */
  isLast = false
  /** True while uWS's own handler runs, in which it has already corked the socket. */
  corked = true
  private readonly res: NativeResponse
  private readonly shared: Shared
  private bodyBytes = 0
  private state: 'open' | 'answered' | 'streaming' | 'gone' = 'open'
  private stream: EventStream | Pieces | Chunks | Rest | undefined = undefined
  private closeListeners: (() => void)[] | undefined = undefined
  private linger: NodeJS.Timeout | undefined = undefined

  constructor(res: NativeResponse, shared: Shared) {
    // Before anything that could throw: a handler that returns without onAborted or an answer ends the process.
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
    const text = headText(reply)
    this.state = 'answered'
    if (reply.head !== true && reply.body !== undefined) this.bodyBytes = Buffer.byteLength(reply.body)
    const { incoming } = this
    if (this.isLast) {
      this.answerAndLinger(text, reply)
      this.cut()
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

  /** What the handler threw. The client is told that something is wrong, and nothing about what. */
  failed(error: unknown): void {
    this.shared.onError(error)
    if (this.state === 'open') this.send(INTERNAL)
    else if (this.state === 'streaming') this.cut()
  }

  /** Of an answer in pieces. */
  private headOf(head: ReplyHead): string {
    return this.shared.leaving ? `${headText(head)}\r\nConnection: close` : headText(head)
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
      this.answerAndLinger(text, reply)
      return
    }
    if (text !== '200 OK') res.writeStatus(text)
    if (bodiless) this.writeBodiless(reply)
    else if (shared.leaving || body.length === 0) res.end(body, shared.leaving)
    else this.stream = endOrHold(res, body)
  }

  private writeBodiless({ head, body }: Reply): void {
    const { res } = this
    // Only end() can close: after the others the client does.
    if (this.shared.leaving) res.writeHeader('Connection', 'close')
    // Written by hand: endWithoutBody(length) leaves the response pending in this core.
    if (head === true && body !== undefined)
      res.writeHeader('Content-Length', String(Buffer.byteLength(body)))
    res.endWithoutBody()
  }

  /**
   * The answer to a request whose body has not arrived. Closing with unread bytes makes the kernel send a reset, which
   * takes the answer from clients that send first and read later; so what still comes is read and dropped.
   */
  private answerEarly(incoming: Body, text: string, reply: Reply): void {
    const late = incoming.remaining > WAIT_FOR_REST
    if (late) this.answerAndLinger(text, reply)
    incoming.onComplete = () => {
      if (this.state === 'gone') return
      if (late) this.cut()
      else this.res.cork(() => this.write(text, reply))
    }
    incoming.discard()
  }

  /**
   * Sends the whole answer as if it were a status line, since end() would take `res` and with it the means to close.
   * The line end that writeStatus adds falls behind the body, where clients skip it (`Connection: close`).
   */
  private answerAndLinger(text: string, reply: Reply): void {
    const { body: whatever = '', head: headOnly = false } = reply
    const unknown = isBodiless(reply.status) || (headOnly && reply.body === undefined)
    const length = unknown ? '' : `\r\nContent-Length: ${Buffer.byteLength(whatever)}`
    const body = headOnly ? '' : whatever
    const head = `${text}${length}\r\nConnection: close\r\n\r\n`
    const whole = typeof body === 'string' ? head + body : Buffer.concat([Buffer.from(head), body])
    this.res.cork(() => this.res.writeStatus(whole))
    this.linger = setTimeout(() => this.cut(), LINGER_MS)
  }

  /** Not at once: uWS's parser would read on in a socket closed under it, and what is corked would be lost. */
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
