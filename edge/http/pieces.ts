import { fail } from '../../sql/errors.ts'
import type { BodyWriter, NativeResponse } from './types.ts'

interface Rest {
  readonly bytes: Uint8Array
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** A response body of known length, written piece by piece at the client's pace. */
export class Pieces implements BodyWriter {
  /** Ended, or the client left. */
  closed: boolean
  private readonly res: NativeResponse
  private readonly totalBytes: number
  /** Status and headers until they have been written. */
  private head: string | undefined
  private accepted = 0
  /** The part of the current piece that the kernel did not take. */
  private rest: Rest | undefined = undefined

  constructor(res: NativeResponse, head: string, totalBytes: number, open: boolean) {
    this.res = res
    this.head = head
    this.totalBytes = totalBytes
    this.closed = !open || totalBytes === 0
    // Registered before any write can be refused; uWS keeps one listener.
    if (!this.closed) res.onWritable(() => this.drain())
  }

  /** Bytes taken by the kernel so far. */
  get bytes(): number {
    return this.accepted
  }

  write(chunk: Uint8Array): Promise<void> {
    if (this.closed) return Promise.reject(fail('request.incomplete'))
    if (this.rest !== undefined) return Promise.reject(new Error('The previous piece is not written yet'))
    if (this.accepted + chunk.length > this.totalBytes) {
      return Promise.reject(new Error(`More than the announced ${this.totalBytes} bytes`))
    }
    if (chunk.length === 0) return Promise.resolve()
    const bytes = this.offer(chunk)
    if (bytes === undefined) return Promise.resolve()
    return new Promise((resolve, reject) => {
      this.rest = { bytes, resolve, reject }
    })
  }

  abort(): void {
    if (!this.closed) this.res.close()
  }

  /** The client left: `res` must not be touched from here on. */
  leave(): void {
    this.closed = true
    const { rest } = this
    this.rest = undefined
    rest?.reject(fail('request.incomplete'))
  }

  /** Passes bytes to uWS. Returns those to offer again, or undefined when it can take the next piece. */
  private offer(bytes: Uint8Array): Uint8Array | undefined {
    let sent = false
    let ended = false
    this.res.cork(() => {
      if (this.head !== undefined) this.res.writeStatus(this.head)
      this.head = undefined
      // Never with an empty array: newer cores take that for the end of the response.
      if (bytes.length > 0) [sent, ended] = this.res.tryEnd(bytes, this.totalBytes)
      else sent = true
      if (ended) this.closed = true
    })
    if (ended) {
      this.accepted = this.totalBytes
      return undefined
    }
    const offset = this.res.getWriteOffset()
    const left = bytes.subarray(offset - this.accepted)
    this.accepted = offset
    return sent ? undefined : left
  }

  private drain(): boolean {
    const { rest } = this
    if (this.closed || rest === undefined) return true
    const bytes = this.offer(rest.bytes)
    if (bytes !== undefined) {
      this.rest = { ...rest, bytes }
      return false
    }
    this.rest = undefined
    rest.resolve()
    return true
  }
}
