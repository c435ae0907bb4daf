import { type Failure, fail } from '../../sql/errors.ts'
import { Spill } from './spill.ts'
import type { NativeResponse, RequestBody } from './types.ts'

/** Bytes buffered for a reader that is slow or has not started, before the client is paused. */
const HIGH_WATER = 256 * 1024
/**
 * Most bytes held in memory; more goes to a file. uWS keeps reading a socket without returning to the event loop as
 * long as each read fills its 512 KiB, paused or not: clients on the same machine got 100 MiB through in one turn.
 */
const SPILL_ABOVE = 2 * 1024 * 1024
/** The limit for a body that nobody has started to read. */
const UNREAD_MAX = 256 * 1024 * 1024

type Sink = (chunk: Uint8Array) => void | Promise<void>

/**
 * The body of one request. It listens before the handler runs, because uWS discards data that has no listener, and
 * keeps chunks until somebody reads them or the response is sent.
 */
export class Body implements RequestBody {
  /** The last byte has arrived. */
  complete = false
  /** The client left. */
  gone = false
  /** Called once, when the last byte arrives. */
  onComplete: (() => void) | undefined = undefined
  private readonly res: NativeResponse
  /** Content-Length, or -1 when the client sends chunks of unknown total length. */
  private readonly length: number
  private max = UNREAD_MAX
  private arrived = 0
  private queue: Uint8Array[] = []
  /** Bytes in the queue or being processed by the sink. */
  private buffered = 0
  /** Data that did not fit into the queue; while there is any, all new data goes here. */
  private spill: Spill | undefined = undefined
  private broken: { readonly error: unknown } | undefined = undefined
  private state: 'unread' | 'reading' | 'discarding' = 'unread'
  private flow: 'open' | 'pausing' | 'paused' = 'open'
  private wake: (() => void) | undefined = undefined

  constructor(res: NativeResponse, length: number) {
    this.res = res
    this.length = length
    res.onData((chunk, isLast) => this.arrive(chunk, isLast))
    // A large body stays with the client until somebody reads it.
    if (length > HIGH_WATER || length < 0) this.pauseSoon()
  }

  /** Bytes that have not arrived; infinite when the client did not announce a length. */
  get remaining(): number {
    if (this.complete) return 0
    return this.length < 0 ? Number.POSITIVE_INFINITY : this.length - this.arrived
  }

  async bytes(max: number): Promise<Uint8Array> {
    const chunks: Uint8Array[] = []
    const total = await this.stream((chunk) => {
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

  async stream(sink: Sink, max: number): Promise<number> {
    if (this.state === 'reading') throw new Error('The body was already read')
    if (this.length > max || this.arrived > this.max) throw tooLarge(max)
    // A response was sent, and the data that had arrived is gone.
    if (this.state === 'discarding') throw fail('request.incomplete')
    this.state = 'reading'
    this.max = max
    try {
      return await this.pump(sink)
    } catch (error) {
      this.discard()
      throw error
    }
  }

  /** Drops buffered and future data, so that the socket can go on to the next request or close. */
  discard(): void {
    this.state = 'discarding'
    this.queue = []
    this.buffered = 0
    this.closeSpill()
    this.resume()
    this.wakeReader()
  }

  /** The response was sent after the whole body had arrived: frees a body that nobody has started to read. */
  forget(): void {
    if (this.state === 'unread') this.discard()
  }

  /** The client left: `res` must not be touched from here on. */
  leave(): void {
    this.gone = true
    if (this.state === 'unread' && this.spill !== undefined) {
      // A handler may never read it, and nothing else would close the file.
      this.broken = { error: fail('request.incomplete') }
      this.closeSpill()
    }
    this.wakeReader()
  }

  private async pump(sink: Sink): Promise<number> {
    let total = 0
    for (;;) {
      this.check()
      let chunk = this.queue.shift()
      const held = chunk?.length ?? 0
      if (chunk === undefined) chunk = await this.unspill()
      if (chunk !== undefined) {
        total += chunk.length
        const pending = sink(chunk)
        if (pending !== undefined) await pending
        // Counted until the sink is done, so that a slow sink slows the client down.
        this.buffered -= held
      } else if (this.complete) return total
      if (this.buffered <= HIGH_WATER / 2 && this.spill === undefined) this.resume()
      if (chunk === undefined) await this.arrival()
    }
  }

  /** @throws when there is no point in reading on. */
  private check(): void {
    if (this.arrived > this.max) throw tooLarge(this.max)
    if (this.broken !== undefined) throw this.broken.error
    if (this.state === 'discarding' || (this.gone && !this.complete)) throw fail('request.incomplete')
  }

  private arrival(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve
    })
  }

  private async unspill(): Promise<Uint8Array | undefined> {
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

  private arrive(chunk: ArrayBuffer, isLast: boolean): void {
    this.arrived += chunk.byteLength
    this.complete = isLast
    if (this.arrived > this.max) this.discard()
    else if (chunk.byteLength > 0 && this.state !== 'discarding') this.keep(chunk)
    if (this.buffered > HIGH_WATER && !isLast) this.pauseSoon()
    this.wakeReader()
    if (isLast) this.onComplete?.()
  }

  private keep(chunk: ArrayBuffer): void {
    if (this.spill === undefined && this.buffered <= SPILL_ABOVE) {
      // A copy, because uWS detaches its buffer when this returns.
      this.queue.push(new Uint8Array(chunk.slice(0)))
      this.buffered += chunk.byteLength
      return
    }
    try {
      this.spill ??= new Spill()
      this.spill.push(new Uint8Array(chunk))
    } catch (error) {
      this.broken ??= { error }
    }
  }

  private wakeReader(): void {
    const wake = this.wake
    this.wake = undefined
    wake?.()
  }

  /**
   * Pauses after this turn of the event loop. If it paused at once, data that the kernel has already delivered would
   * still arrive and arm uWS's 10 s timer, which nothing stops until resume() (PITFALLS 6.1); and if the last chunk
   * were among it, resume() would arm a timer against a handler that still owes the client a response. After the turn
   * nothing can arrive, and pause() itself stops the timer, so a pause may last.
   */
  private pauseSoon(): void {
    if (this.flow !== 'open') return
    this.flow = 'pausing'
    setImmediate(() => {
      if (this.flow !== 'pausing') return
      this.flow = 'open'
      const wanted = this.state === 'unread' || this.buffered > HIGH_WATER || this.spill !== undefined
      if (!wanted || this.complete || this.gone) return
      this.flow = 'paused'
      this.res.pause()
    })
  }

  /** Only after pause(): uWS restores what pause() saved, and with nothing saved the socket never reads again. */
  private resume(): void {
    const paused = this.flow === 'paused'
    this.flow = 'open'
    if (paused && !this.gone) this.res.resume()
  }
}

function tooLarge(limit: number): Failure {
  return fail('request.too_large', { limit })
}
