import { type Failure, fail } from '../../../sql/errors.ts'
import type { NativeResponse, RequestBody } from '../types.ts'
import { Spill } from './spill.ts'

/** Bytes to buffer before pausing the client while the reader is slow or has not started. */
const PAUSE_ABOVE_BYTES = 256 * 1024
/**
 * Maximum number of bytes to hold in memory. Any more go to a file. While each read fills its 512 KiB buffer, uWS keeps
 * reading the socket without returning to the event loop, even if the socket is paused. A local client sent 100 MiB in
 * one turn.
 */
const SPILL_ABOVE_BYTES = 2 * 1024 * 1024
/** Size limit of a body until its reader sets another. */
const MAX_UNREAD_BYTES = 256 * 1024 * 1024

type Sink = (chunk: Uint8Array) => void | Promise<void>

/**
 * The body of one request. It registers its listener before the handler runs, because uWS discards data without one. It
 * keeps chunks until a reader takes them or the response is sent.
 */
export class Body implements RequestBody {
  /** True once the last byte has arrived. */
  isComplete = false
  /** True once the client has disconnected. */
  hasClientLeft = false
  /** Called once, when the last byte arrives. */
  onComplete: (() => void) | undefined = undefined
  private readonly res: NativeResponse
  /** Content-Length; -1 for chunked encoding. */
  private readonly length: number
  private max = MAX_UNREAD_BYTES
  private arrivedBytes = 0
  private queue: Uint8Array[] = []
  /** Number of bytes in the queue, plus those that the sink is processing. */
  private buffered = 0
  /** Data that did not fit into the queue. While it exists, all new data goes here, to keep the order. */
  private spill: Spill | undefined = undefined
  private failure: { readonly error: unknown } | undefined = undefined
  private state: 'unread' | 'reading' | 'discarding' = 'unread'
  private flow: 'open' | 'pausing' | 'paused' = 'open'
  private wake: (() => void) | undefined = undefined

  constructor(res: NativeResponse, length: number) {
    this.res = res
    this.length = length
    res.onData((chunk, isLast) => this.receive(chunk, isLast))
    // The client of a large body must wait until a reader starts.
    if (length > PAUSE_ABOVE_BYTES || length < 0) this.pauseSoon()
  }

  /** Bytes still to arrive; infinite for chunked encoding. */
  get remaining(): number {
    if (this.isComplete) return 0
    return this.length < 0 ? Number.POSITIVE_INFINITY : this.length - this.arrivedBytes
  }

  async readBytes(max: number): Promise<Uint8Array> {
    const chunks: Uint8Array[] = []
    const total = await this.streamTo((chunk) => {
      chunks.push(chunk)
    }, max)
    if (chunks.length === 1) return chunks[0] as Uint8Array
    const whole = new Uint8Array(total)
    let at = 0
    for (const chunk of chunks) {
      whole.set(chunk, at)
      at += chunk.length
    }
    return whole
  }

  async streamTo(sink: Sink, max: number): Promise<number> {
    if (this.state === 'reading') throw new Error('The body has already been read')
    if (this.length > max || this.arrivedBytes > this.max) throw failTooLarge(max)
    // After the response, discard() has dropped the received data.
    if (this.state === 'discarding') throw fail('request.incomplete')
    this.state = 'reading'
    this.max = max
    try {
      return await this.copyToSink(sink)
    } catch (error) {
      this.discard()
      throw error
    }
  }

  /** Drops buffered and future data, so that the socket can proceed to the next request or close. */
  discard(): void {
    this.state = 'discarding'
    this.queue = []
    this.buffered = 0
    this.closeSpill()
    this.resume()
    this.wakeReader()
  }

  /** Frees an unread body that has fully arrived. Call it when the response is sent. */
  releaseUnread(): void {
    if (this.state === 'unread') this.discard()
  }

  /** Handles a disconnect, after which `res` must not be used. */
  handleAbort(): void {
    this.hasClientLeft = true
    if (this.state === 'unread' && this.spill !== undefined) {
      // Close the file here, because no reader will close it if the handler never reads the body.
      this.failure = { error: fail('request.incomplete') }
      this.closeSpill()
    }
    this.wakeReader()
  }

  private async copyToSink(sink: Sink): Promise<number> {
    let total = 0
    for (;;) {
      this.throwIfUnreadable()
      let chunk = this.queue.shift()
      const heldBytes = chunk?.length ?? 0
      if (chunk === undefined) chunk = await this.readSpill()
      if (chunk !== undefined) {
        total += chunk.length
        const pending = sink(chunk)
        if (pending !== undefined) await pending
        // These bytes count as buffered until the sink is done, so that a slow sink slows the client.
        this.buffered -= heldBytes
      } else if (this.isComplete) return total
      if (this.buffered <= PAUSE_ABOVE_BYTES / 2 && this.spill === undefined) this.resume()
      if (chunk === undefined) await this.waitForData()
    }
  }

  /** @throws if the body is too large, incomplete or lost. */
  private throwIfUnreadable(): void {
    if (this.arrivedBytes > this.max) throw failTooLarge(this.max)
    if (this.failure !== undefined) throw this.failure.error
    if (this.state === 'discarding' || (this.hasClientLeft && !this.isComplete))
      throw fail('request.incomplete')
  }

  private waitForData(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve
    })
  }

  private async readSpill(): Promise<Uint8Array | undefined> {
    const { spill } = this
    if (spill === undefined) return undefined
    const chunk = await spill.shift()
    if (spill.isEmpty) this.closeSpill()
    return chunk
  }

  private closeSpill(): void {
    this.spill?.close()
    this.spill = undefined
  }

  private receive(chunk: ArrayBuffer, isLast: boolean): void {
    this.arrivedBytes += chunk.byteLength
    this.isComplete = isLast
    if (this.arrivedBytes > this.max) this.discard()
    else if (chunk.byteLength > 0 && this.state !== 'discarding') this.store(chunk)
    if (this.buffered > PAUSE_ABOVE_BYTES && !isLast) this.pauseSoon()
    this.wakeReader()
    if (isLast) this.onComplete?.()
  }

  private store(chunk: ArrayBuffer): void {
    if (this.spill === undefined && this.buffered <= SPILL_ABOVE_BYTES) {
      // Copies the chunk, because uWS detaches its buffer after this callback.
      this.queue.push(new Uint8Array(chunk.slice(0)))
      this.buffered += chunk.byteLength
      return
    }
    try {
      this.spill ??= new Spill()
      this.spill.push(new Uint8Array(chunk))
    } catch (error) {
      this.failure ??= { error }
    }
  }

  private wakeReader(): void {
    const wake = this.wake
    this.wake = undefined
    wake?.()
  }

  /**
   * Pauses after this turn of the event loop. After an immediate pause, data that the kernel has already delivered
   * still arrives and arms uWS's 10 s timer, which runs until resume() (PITFALLS 6.1). If that data includes the last
   * chunk, resume() arms the timer while the handler still owes a response. After the turn no data can arrive, and
   * pause() stops the timer, so the pause can last.
   */
  private pauseSoon(): void {
    if (this.flow !== 'open') return
    this.flow = 'pausing'
    setImmediate(() => {
      if (this.flow !== 'pausing') return
      this.flow = 'open'
      const needsPause =
        this.state === 'unread' || this.buffered > PAUSE_ABOVE_BYTES || this.spill !== undefined
      if (!needsPause || this.isComplete || this.hasClientLeft) return
      this.flow = 'paused'
      this.res.pause()
    })
  }

  /**
   * Resumes only after pause(), because uWS restores the state that pause() saved. Without a saved state, uWS would
   * never read again.
   */
  private resume(): void {
    const paused = this.flow === 'paused'
    this.flow = 'open'
    if (paused && !this.hasClientLeft) this.res.resume()
  }
}

function failTooLarge(limit: number): Failure {
  return fail('request.too_large', { limit })
}
