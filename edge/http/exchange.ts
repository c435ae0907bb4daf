import type { ErrorCode } from '../../sql/errors.ts'
import type { Body } from './bodies/body.ts'
import { ChunkedBodyWriter } from './bodies/chunked.ts'
import { SizedBodyWriter } from './bodies/sized.ts'
import { EventStream } from './events.ts'
import { isBodiless, JSON_HEADER_BLOCK } from './head.ts'
import type {
  BodyWriter,
  ChunkWriter,
  EventSink,
  NativeResponse,
  Reply,
  ReplyHead,
  Responder,
  ServerState,
} from './types.ts'

/** An early response waits for up to this many outstanding body bytes, so that the connection can stay open. */
const MAX_AWAITED_BYTES = 64 * 1024
/** Time to keep reading a larger body after an early response, as in nginx, before closing the connection. */
const LINGER_MS = 30_000
/** Time to keep reading after a misframed request, as in Apache. */
const LINGER_MISFRAMED_MS = 2_000
/**
 * Padding after a connection's last response. It fills uWS's cork buffer, so that uWS sends the response immediately.
 * Otherwise uWS would drop the buffered response if its parser, which may still run, rejects the bytes that follow.
 */
const FLUSH_PADDING = Buffer.alloc(16 * 1024, '\r\n')
/**
 * One in this many responses without a body closes its connection. uWS silently buffers such responses if the kernel
 * does not accept them (see `HeldResponse`). Closing bounds the buffer of a client that never reads.
 */
const BODILESS_RESPONSES_PER_CLOSE = 1024
/**
 * Up to this size, the kernel accepts the last response whole, so end() may close the connection with it. For larger
 * responses the server tracks unsent bytes, because the process must not exit before the client has them.
 */
const MAX_BYTES_BEFORE_CLOSE = 16 * 1024

const INTERNAL_ERROR: Reply = {
  status: 500,
  block: JSON_HEADER_BLOCK,
  headers: [],
  body: JSON.stringify({ detail: 'Internal error', code: 'internal' satisfies ErrorCode }),
}

/**
 * The response side of one request. `res` throws after the response and after an abort, so only this class uses it, and
 * `state` tracks both. All writes are corked.
 */
export class UwsExchange implements Responder {
  /** The body of the request; undefined if there is none. */
  incoming: Body | undefined = undefined
  /** True if the end of the request is ambiguous. The connection then closes after the response. */
  isMisframed = false
  /** True while uWS's handler runs, because uWS has then corked the socket. */
  isCorked = true
  private readonly res: NativeResponse
  private readonly shared: ServerState
  private bodyBytes = 0
  private state: 'open' | 'answered' | 'streaming' | 'gone' = 'open'
  private stream: EventStream | SizedBodyWriter | ChunkedBodyWriter | HeldResponse | undefined = undefined
  private closeListeners: (() => void)[] | undefined = undefined
  private linger: NodeJS.Timeout | undefined = undefined

  constructor(res: NativeResponse, shared: ServerState) {
    // Must come before code that can throw: uWS ends the process if a handler returns without onAborted or a response.
    res.onAborted(() => this.handleAbort())
    this.res = res
    this.shared = shared
  }

  get isDone(): boolean {
    return this.state !== 'open'
  }

  get sentBytes(): number {
    return this.bodyBytes + (this.stream?.bytes ?? 0)
  }

  onClose(listener: () => void): void {
    if (this.state === 'gone') queueMicrotask(() => this.callListener(listener))
    else if (this.closeListeners === undefined) this.closeListeners = [listener]
    else this.closeListeners.push(listener)
  }

  send(reply: Reply): void {
    if (this.state !== 'open') return
    const text = this.shared.heads.text(reply)
    this.state = 'answered'
    if (reply.isHead !== true && reply.body !== undefined) this.bodyBytes = Buffer.byteLength(reply.body)
    const { incoming } = this
    if (this.isMisframed) {
      this.respondAndLinger(text, reply, LINGER_MISFRAMED_MS)
    } else if (incoming === undefined || incoming.isComplete) {
      incoming?.releaseUnread()
      this.respond(text, reply)
    } else this.respondEarly(incoming, text, reply)
  }

  beginBody(head: ReplyHead, totalBytes: number): BodyWriter {
    const text = this.formatHead(head)
    const pieces = new SizedBodyWriter(this.res, text, totalBytes, this.state === 'open')
    if (this.state !== 'open') return pieces
    if (totalBytes === 0) this.send({ ...head, body: '' })
    else this.begin(pieces)
    return pieces
  }

  beginChunks(head: ReplyHead): ChunkWriter {
    const text = this.formatHead(head)
    const chunks = new ChunkedBodyWriter(this.res, text, this.state === 'open')
    if (this.state === 'open') this.begin(chunks)
    return chunks
  }

  openEvents(head: ReplyHead, first?: Uint8Array | string): EventSink {
    const text = this.formatHead(head)
    if (this.state !== 'open') return new EventStream(this.res, this.shared, undefined)
    const stream = new EventStream(this.res, this.shared, text, first)
    this.begin(stream)
    return stream
  }

  /** Handles an exception of the handler. The client gets no details. */
  handleError(error: unknown): void {
    this.shared.onError(error)
    if (this.state === 'open') this.send(INTERNAL_ERROR)
    else if (this.state === 'streaming') this.closeSoon()
  }

  /** Formats the head of a streamed response. */
  private formatHead(head: ReplyHead): string {
    const text = this.shared.heads.text(head)
    return this.shared.isDraining ? `${text}\r\nConnection: close` : text
  }

  private begin(stream: EventStream | SizedBodyWriter | ChunkedBodyWriter): void {
    this.state = 'streaming'
    this.stream = stream
    this.incoming?.discard()
  }

  private respond(text: string, reply: Reply): void {
    if (this.isCorked) this.write(text, reply)
    else this.res.cork(() => this.write(text, reply))
  }

  private write(text: string, reply: Reply): void {
    const { res, shared } = this
    const { body = '' } = reply
    const bodiless = reply.isHead === true || isBodiless(reply.status)
    const empty = bodiless || body.length === 0
    if (empty && !shared.isDraining && ++shared.bodilessCount % BODILESS_RESPONSES_PER_CLOSE === 0) {
      this.respondAndLinger(text, reply, LINGER_MS)
      return
    }
    res.writeStatus(text)
    if (bodiless) this.writeBodiless(reply)
    else if (body.length === 0 || (shared.isDraining && this.bodyBytes <= MAX_BYTES_BEFORE_CLOSE))
      res.end(body, shared.isDraining)
    else {
      this.announceClose()
      this.stream = endOrHold(res, shared, body)
    }
  }

  /** Asks the client to close the connection, because the only uWS call that closes it is end(). */
  private announceClose(): void {
    if (this.shared.isDraining) this.res.writeHeader('Connection', 'close')
  }

  private writeBodiless({ isHead, body }: Reply): void {
    const { res } = this
    this.announceClose()
    // Write Content-Length separately, because endWithoutBody(length) leaves the response pending in uWS.
    if (isHead === true && body !== undefined)
      res.writeHeader('Content-Length', String(Buffer.byteLength(body)))
    res.endWithoutBody()
  }

  /**
   * Responds to a request whose body has not fully arrived, then reads and drops the rest. If the socket closed with
   * unread bytes, the kernel would send a reset, and clients that read only after sending would lose the response.
   */
  private respondEarly(incoming: Body, text: string, reply: Reply): void {
    const isLarge = incoming.remaining > MAX_AWAITED_BYTES
    if (isLarge) this.respondAndLinger(text, reply, LINGER_MS)
    incoming.onComplete = () => {
      if (this.state === 'gone') return
      if (isLarge) this.closeSoon()
      else this.res.cork(() => this.write(text, reply))
    }
    incoming.discard()
  }

  /**
   * Sends the whole response through writeStatus, because end() would release `res`, which must later close the
   * connection. The padding follows the body, and clients ignore it because of `Connection: close`.
   */
  private respondAndLinger(text: string, reply: Reply, lingerMs: number): void {
    const { body: fullBody = '', isHead: headOnly = false } = reply
    const omitsLength = isBodiless(reply.status) || (headOnly && reply.body === undefined)
    const length = omitsLength ? '' : `\r\nContent-Length: ${Buffer.byteLength(fullBody)}`
    const head = Buffer.from(`${text}${length}\r\nConnection: close\r\n\r\n`)
    const body = Buffer.from((headOnly ? '' : fullBody) as string)
    this.res.cork(() => this.res.writeStatus(Buffer.concat([head, body, FLUSH_PADDING])))
    this.linger = setTimeout(() => this.closeSoon(), lingerMs)
  }

  /** Closes in the next turn, because uWS's parser may still be running and would continue on the closed socket. */
  private closeSoon(): void {
    setImmediate(() => {
      if (this.state !== 'gone' && this.stream?.closed !== true) this.res.close()
    })
  }

  private handleAbort(): void {
    this.state = 'gone'
    clearTimeout(this.linger)
    this.incoming?.handleAbort()
    if (this.stream !== undefined) this.callListener(() => this.stream?.handleAbort())
    const listeners = this.closeListeners
    if (listeners === undefined || this.linger !== undefined) return
    this.closeListeners = undefined
    for (const listener of listeners) this.callListener(listener)
  }

  private callListener(listener: () => void): void {
    try {
      listener()
    } catch (error) {
      this.shared.onError(error)
    }
  }
}

/**
 * Ends a response, or holds the bytes that the kernel has not accepted. uWS would buffer any amount and keep reading.
 * A client that sends requests and never reads would use unlimited memory. Pausing does not help: pause() also stops
 * writing. All requests parsed from one read (512 KiB, thousands of requests) reach their handlers in one turn.
 *
 * But uWS closes the connection when a request arrives before the previous response has ended, even within one read. So
 * a response ends only when the kernel has all of it. Per connection, at most one response and the cork buffer (16 KiB)
 * wait in this process. A client that sends more meanwhile loses the connection and retries (RFC 9112, section 9.3.2).
 * The timer of uWS runs every 4 s and disconnects a client that reads nothing for 10 s.
 *
 * Returns undefined if the kernel has accepted the whole response.
 */
function endOrHold(
  res: NativeResponse,
  shared: ServerState,
  body: string | Uint8Array,
): HeldResponse | undefined {
  const totalBytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length
  const [, ended] = res.tryEnd(body, totalBytes)
  return ended ? undefined : new HeldResponse(res, shared, Buffer.from(body as string), totalBytes)
}

/** Sends the rest of a response at the client's pace. */
class HeldResponse {
  /** True once everything is sent or the client has disconnected. */
  closed = false
  /** Always 0, because the exchange has already counted the whole response. */
  readonly bytes = 0
  private readonly res: NativeResponse
  private readonly shared: ServerState
  private readonly totalBytes: number
  private body: Uint8Array

  constructor(res: NativeResponse, shared: ServerState, body: Uint8Array, totalBytes: number) {
    this.res = res
    this.shared = shared
    shared.unsentResponses++
    this.body = body
    this.totalBytes = totalBytes
    res.onWritable(() => this.drain())
  }

  handleAbort(): void {
    this.close()
  }

  private close(): void {
    if (this.closed) return
    this.closed = true
    if (--this.shared.unsentResponses === 0) this.shared.onAllSent?.()
    this.body = new Uint8Array(0)
  }

  private drain(): boolean {
    if (this.closed) return true
    let sent = false
    this.res.cork(() => {
      const left = this.body.subarray(this.res.getWriteOffset())
      const [isAccepted, ended] = this.res.tryEnd(left, this.totalBytes)
      sent = isAccepted
      if (ended) this.close()
    })
    return sent
  }
}
