import { fail } from '../../sql/errors.ts'
import type { NativeResponse, RequestBody } from './types.ts'

/** Bytes held for a reader that is slow or has not come yet. One read of uWS adds up to 512 KiB to it. */
const HIGH_WATER = 256 * 1024

/**
 * The body of one request. Listens from before the handler runs, because uWS throws away what arrives unheard,
 * and keeps chunks until somebody reads or the answer is sent.
 */
export class Body implements RequestBody {
  /** The last byte has arrived. */
  complete = false
  /** The client left. */
  gone = false
  /** Called once, with the arrival of the last byte. */
  onComplete: (() => void) | undefined = undefined
  private readonly res: NativeResponse
  /** Content-Length, or -1 when the client sends chunks of unknown sum. */
  private readonly length: number
  private arrived = 0
  private queue: Uint8Array[] = []
  private buffered = 0
  private state: 'unread' | 'reading' | 'discarding' = 'unread'
  private flow: 'open' | 'pausing' | 'paused' = 'open'
  private wake: (() => void) | undefined = undefined

  constructor(res: NativeResponse, length: number) {
    this.res = res
    this.length = length
    res.onData((chunk, isLast) => this.arrive(chunk, isLast))
  }

  /** Bytes that have not arrived; infinite when the client did not say how many there are. */
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

  async stream(sink: (chunk: Uint8Array) => void | Promise<void>, max: number): Promise<number> {
    if (this.state === 'reading') throw new Error('The body was already read')
    if (this.length > max) throw fail('request.too_large', { limit: max })
    // An answer was sent, and what had arrived is gone.
    if (this.state === 'discarding') throw fail('request.incomplete')
    this.state = 'reading'
    try {
      return await this.pump(sink, max)
    } catch (error) {
      this.discard()
      throw error
    }
  }

  private async pump(sink: (chunk: Uint8Array) => void | Promise<void>, max: number): Promise<number> {
    let total = 0
    for (;;) {
      if (this.gone && !this.complete) throw fail('request.incomplete')
      const chunk = this.queue.shift()
      if (chunk === undefined) {
        if (this.complete) return total
        if (this.state !== 'reading') throw fail('request.incomplete')
        await new Promise<void>((resolve) => {
          this.wake = resolve
        })
        continue
      }
      total += chunk.length
      if (total > max) throw fail('request.too_large', { limit: max })
      const pending = sink(chunk)
      // Still counted while the sink works on it: held bytes are what the pause is for.
      if (pending !== undefined) await pending
      this.buffered -= chunk.length
      if (this.buffered <= HIGH_WATER / 2) this.resume()
    }
  }

  /** Drops what is held and what still comes, so that the socket goes on to the next request or to its end. */
  discard(): void {
    this.state = 'discarding'
    this.queue = []
    this.buffered = 0
    this.resume()
    this.wakeReader()
  }

  /** The client left: `res` must not be touched from here on. */
  leave(): void {
    this.gone = true
    this.wakeReader()
  }

  private arrive(chunk: ArrayBuffer, isLast: boolean): void {
    this.arrived += chunk.byteLength
    this.complete = isLast
    if (chunk.byteLength > 0 && this.state !== 'discarding') {
      // A copy, because uWS detaches its buffer when this returns.
      this.queue.push(new Uint8Array(chunk.slice(0)))
      this.buffered += chunk.byteLength
      if (this.buffered > HIGH_WATER && !isLast) this.pauseSoon()
    }
    this.wakeReader()
    if (isLast) this.onComplete?.()
  }

  private wakeReader(): void {
    const wake = this.wake
    this.wake = undefined
    wake?.()
  }

  /**
   * Pauses after this turn of the event loop. Paused at once, the rest of the data that the kernel already gave
   * would still arrive and arm uWS's 10 s timer, which nothing stops until resume() (PITFALLS 6.1); and a last chunk
   * among it would leave resume() to arm a timer against a handler that owes the client an answer. After the turn
   * nothing can arrive, and pause() itself stops the timer: a pause may then last.
   */
  private pauseSoon(): void {
    if (this.flow !== 'open') return
    this.flow = 'pausing'
    setImmediate(() => {
      if (this.flow !== 'pausing') return
      this.flow = 'open'
      if (this.complete || this.gone || this.buffered <= HIGH_WATER) return
      this.flow = 'paused'
      this.res.pause()
    })
  }

  /** Only ever after pause(): uWS restores what pause() saved, and nothing saved means a deaf socket. */
  private resume(): void {
    const paused = this.flow === 'paused'
    this.flow = 'open'
    if (paused && !this.gone) this.res.resume()
  }
}
